"""Intervals, paired differences and effect sizes on values whose outcome is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from playrate_lab.compare import Interval, cliffs_delta, compare, effect, interval, paired, per_seed


def rows(values: dict[str, Sequence[float | None]], **columns: object) -> pl.DataFrame:
    """Return a row for each controller and value, with seeds from 1."""
    numbered = ((name, seed, value) for name, of in values.items() for seed, value in enumerate(of, 1))
    frame = pl.DataFrame(list(numbered), schema=["controller", "seed", "delay_s"], orient="row")
    common: dict[str, object] = {"scenario": "path", "case": "", "role": "viewer", "outcome": "complete", **columns}
    return frame.with_columns(**{name: pl.lit(value) for name, value in common.items()})


@pytest.mark.parametrize(
    ("values", "half"),
    # Tables: t(0.975) = 12.70620, 4.302653, 3.182446 with 1, 2 and 3 degrees of freedom.
    [
        ([1, 3], 12.706204736),
        ([1, 2, 3], 4.302652730 / math.sqrt(3)),
        ([1, 1, 3, 3], 3.182446305 * math.sqrt(4 / 3 / 4)),
    ],
)
def test_few_trials_have_students_interval(values: list[float], half: float) -> None:
    found = interval(values)
    assert found is not None
    assert found.method == "student-t"
    assert [found.mean - found.low, found.high - found.mean] == pytest.approx([half, half], rel=1e-8)


def test_one_trial_has_no_interval_and_equal_trials_have_one_of_width_zero() -> None:
    assert interval([3]) == Interval(1, 3, -math.inf, math.inf, "single")
    # The sum of ten times 0.1 is not 1.
    assert interval([0.1] * 10) == Interval(10, 0.1, 0.1, 0.1, "constant")
    assert interval([]) is None
    assert interval([1, math.nan]) is None


def test_the_bootstrap_is_the_same_every_time_and_as_wide_as_students_interval() -> None:
    values = [i * 7 % 20 for i in range(20)]
    found = interval(values)
    assert found is not None
    assert found.method == "bootstrap"
    assert found == interval(values)
    # sd = √35, t(0.975; 19) = 2.093024.
    half = 2.093024 * math.sqrt(35 / 20)
    assert found.high - found.low == pytest.approx(2 * half, rel=0.04)
    assert (found.high + found.low) / 2 == pytest.approx(9.5, abs=0.1 * half)


@pytest.mark.parametrize("count", [2, 5, 8, 20])
def test_nineteen_in_twenty_intervals_of_normal_trials_contain_the_mean(count: int) -> None:
    drawn = np.random.default_rng(1).normal(size=(400, count))
    intervals = [interval(values) for values in drawn]
    held = sum(found is not None and found.low <= 0 <= found.high for found in intervals)
    assert 0.91 <= held / 400 <= 0.98


def test_controllers_are_compared_seed_by_seed() -> None:
    # The seeds differ far more than the controllers do.
    other = {seed: seed * 10.0 for seed in range(1, 11)}
    one = {seed: value + 2 for seed, value in other.items()} | {99: 1e9}
    found = paired(one, other)
    assert found is not None
    assert found.difference == Interval(10, 2, 2, 2, "constant")
    assert found.ratio == pytest.approx(570 / 550)
    assert found.ratio_low is not None
    assert found.ratio_high is not None
    assert 1 < found.ratio_low < 570 / 550 < found.ratio_high < 1.2
    assert paired(one, {}) is None
    assert paired({1: math.inf}, {1: 0}) is None


def test_an_equal_difference_twice_is_chance_if_the_numbers_vary() -> None:
    chance = paired({1: 14, 2: 17}, {1: 11, 2: 14})
    assert chance is not None
    assert chance.difference.method == "student-t"
    assert chance.difference.low < 0 < 6 < chance.difference.high
    certain = paired({1: 14, 2: 14}, {1: 11, 2: 11})
    assert certain is not None
    assert certain.difference.method == "constant"


def test_there_is_no_ratio_to_zero_and_equal_pairs_have_a_certain_one() -> None:
    def ratio(one: float, other: float) -> tuple[float | None, ...]:
        found = paired(dict.fromkeys(range(5), one), dict.fromkeys(range(5), other))
        assert found is not None
        return found.ratio, found.ratio_low, found.ratio_high

    assert ratio(1, 0) == (None, None, None)
    assert ratio(3, 2) == (1.5, 1.5, 1.5)
    few = paired({1: 1, 2: 2}, {1: 2, 2: 2})
    assert few is not None
    assert (few.ratio, few.ratio_low) == (0.75, None)


def test_an_effect_counts_pairs_in_which_one_has_more() -> None:
    assert cliffs_delta([4, 5], [1, 2, 3]) == 1
    assert cliffs_delta([1, 2], [1, 2]) == 0
    # 9 pairs: 1 more, 6 less, 2 equal.
    assert cliffs_delta([1, 2, 3], [2, 3, 4]) == pytest.approx(-5 / 9)
    assert [effect(delta) for delta in (0.1, -0.2, 0.4, 0.474)] == ["negligible", "small", "medium", "large"]
    with pytest.raises(ValueError, match="at least one value"):
        cliffs_delta([], [1])


def test_a_comparison_has_a_row_for_each_group_and_controller() -> None:
    values = {"ideal": [1.0], "reno": [3.0, 4.0, 5.0], "cubic": [2.0, 3.0, 3.0]}
    table = compare(pl.concat([rows(values), rows({"reno": [1.0]}, case="b")]), "delay_s", "cubic")
    assert table.columns[:5] == ["scenario", "case", "controller", "trials", "mean"]
    ideal, reno, cubic, alone = table.to_dicts()
    # A single trial of `ideal` is that of all seeds.
    assert (ideal["trials"], ideal["method"], ideal["difference"]) == (3, "constant", pytest.approx(-5 / 3))
    assert (reno["mean"], reno["difference"], reno["ratio"]) == (4, pytest.approx(4 / 3), 1.5)
    assert (reno["cliffs_delta"], reno["effect"]) == (pytest.approx(7 / 9), "large")
    assert reno["difference_low"] < reno["difference"] < reno["difference_high"]
    assert (cubic["trials"], cubic["difference"], cubic["effect"]) == (3, None, None)
    assert (alone["case"], alone["low"], alone["high"], alone["difference"]) == ("b", None, None, None)
    means = compare(rows(values), "delay_s", None)
    assert means["difference"].null_count() == 3
    assert means["low"].null_count() == 0


def test_a_trial_is_the_mean_over_its_flows_and_failed_or_partial_ones_are_left_out() -> None:
    flows = pl.concat(
        [
            rows({"reno": [1.0, 2.0, None]}),
            rows({"reno": [3.0, 4.0, 5.0]}),
            rows({"reno": [100.0, 100.0, 100.0]}, role="bulk"),
        ]
    )
    failed = flows.with_columns(outcome=pl.when(delay_s=4.0).then(pl.lit("failed")).otherwise("outcome"))
    assert per_seed(flows, "delay_s").select("seed", "value").rows() == [(1, 2), (2, 3)]
    assert per_seed(failed, "delay_s").select("seed", "value").rows() == [(1, 2)]
    assert per_seed(flows, "delay_s", role="bulk").get_column("value").to_list() == [100, 100, 100]


def test_a_ratio_of_several_flows_is_that_of_their_sums() -> None:
    flows = pl.concat([rows({"reno": [0.5]}), rows({"reno": [0.01]})])
    flows = flows.rename({"delay_s": "loss_ratio"}).with_columns(
        lost_packets=pl.Series([5, 10]), sent_packets=pl.Series([10, 1000])
    )
    assert per_seed(flows, "loss_ratio").get_column("value").to_list() == [15 / 1010]
    with pytest.raises(ValueError, match="no column 'sent_packets'"):
        per_seed(flows.drop("sent_packets"), "loss_ratio")


def test_wrong_input_is_named() -> None:
    frame = rows({"reno": [1.0], "cubic": [1.0]})
    with pytest.raises(ValueError, match="no column 'speed'"):
        compare(frame, "speed", "reno")
    with pytest.raises(ValueError, match="no column 'delay', near 'delay_s'"):
        compare(frame, "delay", "reno")
    with pytest.raises(ValueError, match=r"baseline .vegas. .* controllers: reno, cubic"):
        compare(frame, "delay_s", "vegas")
    mixed = pl.concat([frame.with_columns(scenario_hash=pl.lit(text), loss=pl.lit(text)) for text in "ab"])
    with pytest.raises(ValueError, match="path has rows of several versions or settings"):
        compare(mixed, "delay_s", "reno")
    assert compare(mixed, "delay_s", "reno", by=("scenario", "loss")).height == 4
