"""Tests of the vocabulary of claims."""

from __future__ import annotations

import math
import re

import numpy as np
import polars as pl
import pytest

import papers
from papers.judge import (
    Comparison,
    Finding,
    Outcome,
    Results,
    Trials,
    Values,
    above,
    all_of,
    below,
    concordance,
    equal,
    finding,
    least,
    magnitude,
    majority,
    median_of,
    most,
    negligible,
    similar,
    words,
)
from papers.tests.worlds import world
from playrate_lab.compare import cliffs_delta, interval, per_seed

AGREES, NO_DIFFERENCE, CONTRADICTED = Outcome.AGREES, Outcome.NO_DIFFERENCE, Outcome.CONTRADICTED
LOW, HIGH = [9.0, 10.0, 11.0, 10.0], [19.0, 21.0, 20.0, 20.0]


def values(x: list[float], name: str = "it", quantity: str = "lost_packets", unit: str = "packets") -> Values:
    return Values(name, quantity, unit, np.array([x]))


def outcome(comparison: Comparison) -> Outcome | None:
    return finding("a claim", comparison).outcome


def rows(table: dict[str, list[float]], metric: str = "lost_packets") -> Results:
    """Rows of one scenario: values of each trial by controller."""
    made = [
        {"scenario": "s", "controller": name, "seed": seed, "role": "viewer", metric: value}
        for name, of in table.items()
        for seed, value in enumerate(of)
    ]
    return pl.DataFrame(made)


def trials(table: dict[str, list[float]]) -> dict[str, Values]:
    return Trials(rows(table), ["s"], list(table)).of("lost_packets")


def test_an_order_is_decided_by_the_interval_of_the_paired_differences() -> None:
    assert outcome(above(values(HIGH), values(LOW))) == AGREES
    assert outcome(above(values(LOW), values(HIGH))) == CONTRADICTED
    assert outcome(below(values(LOW), values(HIGH))) == AGREES
    assert outcome(below(values([9, 11, 10, 10]), values(LOW))) == NO_DIFFERENCE
    # Trials vary far more than the controllers differ, but each pair differs alike.
    one, other = [10, 100, 1_000, 5_000], [11.0, 102, 1_001, 5_002]
    assert outcome(below(values(list(map(float, one))), values(other))) == AGREES
    assert outcome(below(values(list(map(float, one))), values(other[1:] + other[:1]))) == NO_DIFFERENCE


def test_numbers_are_those_of_playrate_lab() -> None:
    found, expected = finding("a claim", below(values(LOW), values(HIGH))), interval(np.subtract(HIGH, LOW))
    assert expected is not None
    assert (found.estimate, found.low, found.high) == (expected.mean, expected.low, expected.high)
    assert found.effect == cliffs_delta(HIGH, LOW) == 1
    assert found.text == "lost_packets: it 10 packets against it 20 packets"
    assert (found.unit, found.quantity, found.margin) == ("packets", "lost_packets", None)


def test_a_number_can_be_compared_with() -> None:
    assert outcome(above(values(LOW), 5)) == AGREES
    assert outcome(above(values(LOW), 15)) == CONTRADICTED
    # The interval is 8.7 to 11.3.
    assert outcome(above(values(LOW), 8.6)) == AGREES
    assert outcome(above(values(LOW), 8.8)) == outcome(above(values(LOW), 11.2)) == NO_DIFFERENCE
    assert outcome(above(values(LOW), 11.4)) == CONTRADICTED
    assert outcome(below(values(LOW), 10)) == NO_DIFFERENCE


def test_trials_that_are_all_equal_have_an_interval_without_width() -> None:
    nothing, some = values([0, 0, 0, 0]), values([3, 3, 3, 3])
    found = finding("a claim", below(nothing, nothing))
    assert (found.outcome, found.estimate, found.low, found.high) == (NO_DIFFERENCE, 0, 0, 0)
    assert outcome(below(nothing, some)) == AGREES
    assert outcome(above(nothing, some)) == CONTRADICTED
    assert outcome(equal(nothing, nothing, within=0)) == AGREES
    assert outcome(negligible(nothing, at_most=0)) == AGREES
    assert outcome(negligible(some, at_most=3)) == AGREES
    assert outcome(negligible(some, at_most=2.9)) == CONTRADICTED


def test_a_single_trial_decides_nothing_but_shows_the_weakest() -> None:
    found = finding("a claim", all_of(above(values([9]), values([3], "far")), above(values([9]), values([8], "near"))))
    assert (found.outcome, found.estimate, found.low, found.high) == (NO_DIFFERENCE, 1, None, None)
    assert "near" in found.text
    assert outcome(negligible(values([0]), at_most=0)) == NO_DIFFERENCE
    assert outcome(equal(values([5]), values([500]), within=1)) == NO_DIFFERENCE


def test_equality_is_decided_by_a_margin() -> None:
    assert outcome(equal(values(LOW), values([10, 9, 11, 10]), within=3)) == AGREES
    assert outcome(equal(values(LOW), values([10, 9, 11, 10]), within=0.1)) == NO_DIFFERENCE
    for one, other in ((LOW, HIGH), (HIGH, LOW)):
        assert outcome(equal(values(one), values(other), within=15)) == AGREES
        assert outcome(equal(values(one), values(other), within=10)) == NO_DIFFERENCE
        assert outcome(equal(values(one), values(other), within=5)) == CONTRADICTED
    found = finding("a claim", equal(values(LOW), values(HIGH), within=5))
    assert (found.estimate, found.margin, found.effect) == (-10, 5, -1)
    assert outcome(equal(values(LOW), 10, within=3)) == AGREES
    assert outcome(equal(values(LOW), 20, within=3)) == CONTRADICTED


def test_what_is_negligible_may_be_below_zero() -> None:
    assert outcome(negligible(values([-9, -10, -11]), at_most=1)) == AGREES
    assert outcome(negligible(values(LOW), at_most=5)) == CONTRADICTED
    assert outcome(negligible(values(LOW), at_most=10)) == NO_DIFFERENCE


def test_similar_values_differ_by_a_share_of_the_second() -> None:
    assert outcome(similar(values(LOW), values([10, 11, 13, 11]), within=0.25)) == AGREES
    assert outcome(similar(values(LOW), values(HIGH), within=0.25)) == CONTRADICTED
    assert outcome(similar(values([0, 0, 0]), values([0, 0, 0]), within=0.25)) == AGREES
    few, none = values([2, 3, 3, 2]), values([0, 0, 0, 0])
    assert outcome(similar(few, none, within=0.25)) == CONTRADICTED
    assert outcome(similar(few, none, within=0.25, floor=28)) == AGREES


def test_a_conjunction_is_decided_by_its_weakest_comparison() -> None:
    clear, open_, wrong = above(values(HIGH), 1), above(values(LOW), values([10, 9, 11, 10])), above(values(LOW), 50)
    assert outcome(all_of(clear, clear)) == AGREES
    assert outcome(all_of(clear, open_)) == NO_DIFFERENCE
    assert outcome(all_of(clear, wrong, open_)) == CONTRADICTED
    found = finding("a claim", all_of(clear, all_of(wrong, open_)))
    assert found.estimate == -40
    assert found.text.endswith("; weakest of 3 comparisons")
    missing = above(values([math.nan, math.nan]), 1)
    assert outcome(all_of(clear, wrong, missing)) is None


def test_comparisons_of_nothing_can_be_left_out() -> None:
    nothing, clear = below(values([0, 0, 0]), values([0, 0, 0])), below(values(LOW), values(HIGH))
    assert outcome(all_of(nothing, clear)) == NO_DIFFERENCE
    assert outcome(all_of(nothing, clear, leave_out_nothing=True)) == AGREES
    assert outcome(all_of(nothing, nothing, leave_out_nothing=True)) == NO_DIFFERENCE


def test_a_majority_is_more_than_half() -> None:
    clear, open_, wrong = above(values(HIGH), 1), above(values(LOW), 10), above(values(LOW), 50)
    assert outcome(majority(clear, clear, wrong)) == AGREES
    assert outcome(majority(clear, clear, wrong, wrong)) == CONTRADICTED
    assert outcome(majority(clear, open_, wrong)) == NO_DIFFERENCE
    assert outcome(majority(clear, clear, open_, clear, wrong)) == AGREES
    assert outcome(majority(clear, clear, above(values([math.nan]), 1))) is None
    assert finding("a claim", majority(clear, wrong, open_)).text.startswith("lost_packets: it 10 packets against 10")


def test_least_and_most_compare_with_every_other() -> None:
    of = trials({"a": LOW, "b": HIGH, "c": [30, 31, 29, 30]})
    assert outcome(least(of, "a")) == outcome(most(of, "c")) == outcome(least(of, "a", "b")) == AGREES
    assert outcome(least(of, "b")) == outcome(most(of, "b")) == outcome(most(of, "a", "c")) == CONTRADICTED
    assert outcome(least({"a": of["a"], "z": values([10, 9, 11, 10])}, "a")) == NO_DIFFERENCE


def test_two_quantities_go_together_if_they_order_controllers_alike() -> None:
    one = {name: values([value, value + 0.5]) for name, value in zip("abc", (1.0, 2.0, 3.0), strict=True)}
    other = {name: values([value, -value]) for name, value in zip("abc", (10.0, 20.0, 30.0), strict=True)}
    assert concordance(one, other).x.tolist() == [[1, -1]]
    same = {name: values([0, 0]) for name in "abc"}
    assert concordance(same, other).x.tolist() == [[0, 0]]


def test_values_can_be_subtracted_multiplied_and_summed_up() -> None:
    assert (values(HIGH) - values(LOW)).x.tolist() == [[10, 11, 9, 10]]
    assert (0.5 * values([2, 4])).x.tolist() == [[1, 2]]
    assert median_of([values([1, 9]), values([2, 8]), values([9, 1])], "m").x.tolist() == [[2, 8]]
    assert values([1, math.nan, 3]).mean == 2


def test_a_trial_without_a_value_is_left_out() -> None:
    assert finding("a claim", above(values([*HIGH, math.nan]), values([*LOW, 900.0]))).estimate == 10
    found = finding("a claim", above(values([math.nan, math.nan]), values([1, 2])))
    assert (found.outcome, found.estimate, found.chance) == (None, None, None)
    frame = rows({"a": LOW}).with_columns(outcome=pl.when(pl.col("seed") == 0).then(pl.lit("failed")))
    assert np.isnan(Trials(frame, ["s"], ["a"]).of("lost_packets")["a"].x[0]).tolist() == [True, False, False, False]


def test_controllers_conditions_and_metrics_that_were_not_run_have_no_values() -> None:
    of = Trials(rows({"a": LOW}), ["s", "t/case"], ["a", "b"])
    assert of.of("lost_packets")["a"].mean == 10
    assert math.isnan(of.of("lost_packets")["b"].mean)
    assert math.isnan(of.of("lost_packets", "t/case")["a"].mean)
    assert math.isnan(of.of("frozen_s")["a"].mean)
    assert math.isnan(of.of("excess_lost_packets")["a"].mean)
    assert math.isnan(of.of("lost_packets@1s..2s")["a"].mean)
    only = Trials(rows({"a": LOW}), ["s", "t/case"], ["a"])
    assert only.run(["s", "t/case"]) == ["s"]
    assert only.run(["t/case"]) == ["t/case"]


def test_the_ideal_senders_value_is_subtracted() -> None:
    of = Trials(rows({"a": LOW, "ideal": [1, 2, 3, 4]}), ["s"], ["a"]).of("excess_lost_packets")
    assert of["a"].x[0].tolist() == [8, 8, 8, 6]
    shared = Trials(rows({"a": LOW, "ideal": [1]}), ["s"], ["a"]).of("excess_lost_packets")
    assert shared["a"].x[0].tolist() == [8, 9, 10, 9]


def test_flows_are_averaged_and_shares_are_ratios_of_sums() -> None:
    flows = [("viewer", 1, 10), ("viewer", 2, 10), ("bulk", 27, 100)]
    made = [
        {"scenario": "s", "controller": "a", "seed": 1, "role": role, "lost_packets": lost, "sent_packets": sent}
        for role, lost, sent in flows
    ]
    of = Trials(pl.DataFrame(made), ["s"], ["a"])
    assert of.of("lost_packets")["a"].mean == 1.5
    assert of.of("lost_packets", role="bulk")["a"].mean == 27
    assert of.of("loss_ratio")["a"].mean == 0.15
    assert of.of("loss_ratio", role="all")["a"].mean == 0.25


def test_ratios_are_those_of_playrate_lab() -> None:
    run = {"scenario": "s", "case": "", "controller": "a", "seed": 1, "role": "viewer", "startup_delay_s": 0.0}
    flows = [(1, 60.0, 1.0), (1, 30.0, 2.0)]
    names = ("underflow_events", "ended_s", "underflows_per_minute")
    frame = pl.DataFrame([{**run, **dict(zip(names, flow, strict=True))} for flow in flows])
    ours = Trials(frame, ["s"], ["a"]).of("underflows_per_minute")["a"].mean
    assert ours == pytest.approx(per_seed(frame, "underflows_per_minute")["value"][0]) == pytest.approx(4 / 3)
    # Values of another world may have the terms.
    kept = frame.with_columns(ended_s=pl.lit(None, pl.Float64))
    assert Trials(kept, ["s"], ["a"]).of("underflows_per_minute")["a"].mean == 1.5


def test_windows_and_places_of_lists_are_read() -> None:
    at = {"s": {"a": 7.0}}
    frame = world({"throughput_bps@1s..2s": at, "window_first_rtts_bytes[4]": at, "bulk:throughput_bps@1s..2s": at})
    of = Trials(frame, ["s"], ["a"])
    assert of.of("throughput_bps@1s..2s")["a"].mean == pytest.approx(7, rel=0.01)
    assert of.of("throughput_bps@1s..2s", role="bulk")["a"].mean == pytest.approx(7, rel=0.01)
    assert math.isnan(of.of("throughput_bps@1s..3s")["a"].mean)
    assert of.of("window_first_rtts_bytes[4]")["a"].mean == pytest.approx(7, rel=0.01)
    assert of.of("window_first_rtts_bytes[1]")["a"].mean == 0
    assert math.isnan(of.of("window_first_rtts_bytes[5]")["a"].mean)
    assert of.metrics == {"throughput_bps", "window_first_rtts_bytes"}


def test_the_chance_level_is_the_share_of_shuffles_that_agree() -> None:
    of = trials({"a": LOW, "b": HIGH, "c": [30, 31, 29, 30], "d": [40, 41, 39, 40]})
    chance = finding("a claim", least(of, "a"), primary=True).chance
    assert chance is not None
    assert chance < 0.05
    # A claim that holds for all of them holds for any labels.
    assert finding("a claim", negligible(of["a"], at_most=99), primary=True).chance == 1
    assert finding("a claim", least(of, "a")).chance is None
    two = trials({"a": [1.0] * 3, "b": [2.0] * 3})
    # Both labels stay or both change in a trial: all three agree in one of eight shuffles.
    assert finding("a claim", below(two["a"], two["b"]), primary=True).chance == pytest.approx(1 / 8, abs=0.08)


def test_shuffles_repeat_and_keep_the_values_of_each_seed() -> None:
    table = {"a": [1.0, 10, 100], "b": [2.0, 20, 200]}
    first, second = trials(table), trials(table)
    assert (first["a"].x == second["a"].x).all()
    assert (np.sort([first["a"].x, first["b"].x], axis=0) == [[[1, 10, 100]], [[2, 20, 200]]]).all()


def test_labels_of_conditions_can_be_shuffled_instead() -> None:
    frame = world({"lost_packets": {"s/one": {"a": 1.0, "b": 1.0}, "s/two": {"a": 2.0, "b": 2.0}}})
    for shuffle, sure in (("controllers", True), ("conditions", False)):
        of = Trials(frame, ["s/one", "s/two"], ["a", "b"], shuffle=shuffle)  # type: ignore[arg-type]
        found = finding("a claim", below(of.of("lost_packets")["a"], of.of("lost_packets", "s/two")["a"]), primary=True)
        assert found.chance is not None
        assert (found.chance == 1) == sure


def test_a_printed_number_stands_with_ours() -> None:
    share = values([0.16, 0.17, 0.18], "CWV", "switch_share", "share")
    found = magnitude("switches", 0.174, share, "17.4%", within=0.25)
    assert (found.printed, found.within) == ("17.4 %", True)
    assert re.fullmatch(r"17 % \(14\.5 % to 19\.5 %\)", found.measured)
    assert magnitude("switches", 0.057, share, "5.7%", within=0.25).within is False
    assert magnitude("switches", 0.174, share, "17.4%").within is None
    missing = magnitude("switches", 0.174, values([math.nan]), "17.4%", within=0.25)
    assert (missing.measured, missing.within) == ("not measured", None)


def test_numbers_have_units_for_people() -> None:
    assert words(3.6e6, "bit/s") == "3.6 Mbit/s"
    assert words(0.11, "s") == "110 ms"
    assert words(2.5, "s") == "2.5 s"
    assert words(25_000, "packets") == "25,000 packets"
    assert words(0.4, "") == "0.4"


def test_the_documented_claim_of_ones_own_works() -> None:
    """The package's documentation has a claim in three lines."""
    code = re.findall(r"```python\n(.*?)```", papers.__doc__ or "", re.DOTALL)
    names: dict[str, object] = {}
    exec(code[0], names)
    judge = names["cubic_stalls_less"]
    assert callable(judge)
    for cubic, reno, expected in ((1.0, 2.0, AGREES), (2.0, 1.0, CONTRADICTED), (1.0, 1.0, NO_DIFFERENCE)):
        found = judge(world({"frozen_s": {"three-controllers": {"cubic": cubic, "reno": reno}}}))
        assert isinstance(found, Finding)
        assert found.outcome == expected
