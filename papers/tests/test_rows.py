"""Tests of the rows: they agree in a world that matches the paper, and are contradicted in its opposites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from papers.judge import Finding, Judgement, Magnitude, Outcome
from papers.p12 import ALONE, CUBIC, NEWRENO, SHARED, STREAM
from papers.p13 import CCP, CCPD2, CCPD4, COMPOUND, RENO, SIX
from papers.p14 import FOUR, LSS, SSS, VS
from papers.p15 import FIVE, HALF, LARGE, LB, LCA, MIDDLE, SHARES, SMALL, TWICE
from papers.p21 import BOTH, CWV, DSL, FTTC, NEW
from papers.rows import ROWS
from papers.tests.worlds import Arms, arms, world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

RATE, LOSS = "throughput_bps@50s..150s", "lost_packets@50s..150s"


def at(condition: str, controllers: Sequence[str], *values: float) -> Arms:
    return {condition: dict(zip(controllers, values, strict=True))}


def everywhere(conditions: Iterable[str], controllers: Sequence[str], *values: float) -> Arms:
    return {name: of for condition in conditions for name, of in at(condition, controllers, *values).items()}


def slower_than_the_film(scenario: str) -> dict[str, Arms]:
    return {
        "frames_discarded": at(scenario, SIX, 900, 300, 800, 500, 600, 550),
        "underflow_events": at(scenario, SIX, 90, 20, 80, 50, 60, 40),
        "lost_packets": at(scenario, SIX, 100, 900, 120, 500, 600, 700),
    }


def longer_path(scenario: str) -> dict[str, Arms]:
    return {
        "frames_discarded": at(scenario, FIVE, 90, 80, 30, 40, 0),
        "underflow_events": at(scenario, FIVE, 70, 60, 20, 30, 1),
        "lost_packets": at(scenario, FIVE, 300, 400, 900, 700, 950),
    }


CASES = (ALONE, *SHARED)
#: Worlds as the papers say.
PAPERS: dict[str, dict[str, Arms]] = {
    "P12-3a": {
        RATE: at(ALONE, (STREAM, NEWRENO), 7e6, 7e6) | everywhere(SHARED, (STREAM, NEWRENO), 3e6, 4e6),
        f"bulk:{RATE}": everywhere(SHARED, (STREAM, NEWRENO), 5e6, 4e6),
    },
    "P12-3b": {f"bulk:{RATE}": everywhere(SHARED, (STREAM, NEWRENO), 5e6, 4e6)},
    "P12-3c": dict.fromkeys((LOSS, f"bulk:{LOSS}"), everywhere(CASES, (STREAM, NEWRENO), 10, 50)),
    "P12-5": {
        "throughput_bps@5s..30s": at("p12-5", (STREAM, CUBIC), 95e6, 96e6),
        "throughput_bps@35s..60s": at("p12-5", (STREAM, CUBIC), 8e6, 48e6),
        "bulk:throughput_bps@30s..60s": at("p12-5", (STREAM, CUBIC), 85e6, 45e6),
    },
    "P13-4": slower_than_the_film("p13-4"),
    "P13-4L": slower_than_the_film("p13-4-loss"),
    "P13-5": {
        "window_recovery_mean_s": at("p13-4", SIX, 5, 2, 4, 1, 1, 1),
        "window_spread_bytes": at("p13-4", SIX, 50e3, 60e3, 50e3, 30e3, 10e3, 90e3),
    },
    "P13-6": {
        "frames_discarded": at("p13-6", SIX, 1, 0, 2, 3, 0, 0),
        "underflow_events": at("p13-6", SIX, 1, 0, 2, 3, 0, 0),
        "lost_packets": at("p13-6", SIX, 10, 900, 20, 300, 400, 500),
    },
    "P13-7": {
        "frames_discarded": at("p13-7", SIX, 1, 0, 2, 3, 0, 0),
        "lost_packets": at("p13-7", SIX, 100, 900, 105, 110, 95, 400),
    },
    "P13-8": {
        "frames_discarded": at("p13-8", SIX, 800, 1, 700, 2, 3, 0),
        "underflow_events": at("p13-8", SIX, 80, 1, 70, 2, 3, 0),
        "lost_packets": at("p13-8", SIX, 30, 900, 40, 300, 400, 500),
    },
    "P13-9": {
        "underflow_events": at("p13-9", SIX, 1, 0, 2, 3, 0, 0),
        "lost_packets": at("p13-9", SIX, 0, 90, 5, 30, 40, 500) | at("p13-6", SIX, 0, 900, 20, 300, 400, 500),
    },
    "P13-10": {
        "frames_discarded": at("p13-10", SIX, 80, 10, 12, 50, 60, 11),
        "underflow_events": at("p13-10", SIX, 50, 4, 9, 2, 40, 3) | at("p13-9", SIX, 1, 3, 2, 2, 4, 3),
        "lost_packets": at("p13-10", SIX, 28, 30, 29, 31, 28, 60),
    },
    "P13-11": {
        "frames_discarded": at("p13-11", SIX, 1, 0, 2, 6, 7, 8),
        "underflow_events": at("p13-11", SIX, 1, 0, 2, 6, 7, 8),
        "lost_packets": at("p13-11", SIX, 30, 50, 40, 300, 400, 500),
    },
    "P14-4": {
        "window_first_rtts_bytes[4]": at("p14-rtt100", FOUR, 26e3, 65e3, 90e3, 26e3),
        "window_growth": at("p14-rtt100", FOUR, 1.9, 1.1, 1.1, 1.8),
        "window_30s_step_sd": at("p14-rtt100", FOUR, 0.1, 0.1, 0.4, 0.2),
    },
    "P14-5": {"capacity_mean_bps": at("p14-rtt100", FOUR, 15e6, 15.2e6, 14.9e6, 15.1e6)},
    "P14-6": {
        "min_rtt_s": at("p14-rtt100", FOUR, 0.1, 0.101, 0.102, 0.1),
        "rtt_p05_s": at("p14-rtt100", FOUR, 0.102, 0.102, 0.102, 0.102),
        "rtt_p95_s": at("p14-rtt100", FOUR, 0.18, 0.15, 0.15, 0.16),
    },
    "P14-7": {
        "frames_discarded": at("p14-rtt100", FOUR, 10, 60, 50, 30),
        "underflow_events": at("p14-rtt100", FOUR, 10, 60, 50, 30),
        "lost_packets": at("p14-rtt100", FOUR, 20e3, 900, 800, 1_000),
    },
    "P14-8..10": {
        "frames_discarded": at("p14-rtt3", FOUR, 90, 60, 50, 30),
        "underflow_events": at("p14-rtt3", FOUR, 90, 60, 50, 30),
        "slow_start_entries": at("p14-rtt3", FOUR, 9, 8, 5, 3),
        "rtt_mean_s": at("p14-rtt3", FOUR, 0.4, 0.1, 0.2, 0.3),
    },
    "P14-11..12": {
        "frames_discarded": at("p14-rtt200", FOUR, 10, 60, 50, 30),
        "underflow_events": at("p14-rtt200", FOUR, 10, 60, 50, 30),
        "window_30s_spread_bytes": arms(["p14-rtt200"], FOUR, 8e5) | arms(["p14-rtt100"], FOUR, 1e5),
        "rtt_sd_s": arms(["p14-rtt200"], FOUR, 0.01) | arms(["p14-rtt100"], FOUR, 0.03),
    },
    "P15-4": {
        "frames_discarded": at("p15-rtt3", FIVE, 0, 0, 50, 90, 1),
        "underflow_events": at("p15-rtt3", FIVE, 1, 2, 50, 90, 2),
        "lost_packets": at("p15-rtt3", FIVE, 300, 400, 600, 700, 950),
    },
    "P15-5": longer_path("p15-rtt100"),
    "P15-6": longer_path("p15-rtt200"),
    "P15-7": {
        "frames_discarded": at(SMALL, SHARES, 1, 2, 7),
        "underflow_events": at(SMALL, SHARES, 1, 2, 7),
    },
    "P15-8..9": {
        "frames_discarded": at(MIDDLE, SHARES, 1, 2, 7) | at(LARGE, SHARES, 2, 1, 5) | at(SMALL, SHARES, 90, 80, 200),
        "underflow_events": at(MIDDLE, SHARES, 1, 2, 7) | at(LARGE, SHARES, 2, 1, 5),
        "lost_packets": at(MIDDLE, SHARES, 500, 510, 520) | at(SMALL, SHARES, 540, 500, 500),
    },
    "P21-2": {
        "restart_avoidance_mean_s": at("p21-resume", BOTH, 0.11, 0.16),
        "restart_loss_share": at("p21-resume", BOTH, 0.1, 0.9),
        "restart_lost_mean_bytes": at("p21-resume", BOTH, 1e3, 50e3),
    },
    "P21-4": {
        f"{kind}_{what}_bps": everywhere((*FTTC, *DSL), BOTH, 2e6, 5e6)
        for kind in ("instant", "smoothed")
        for what in ("sd", "mean")
    },
    "P21-5": {"lost_packets": everywhere((*DSL, *FTTC[1:]), BOTH, 100, 200) | at(FTTC[0], BOTH, 0, 0)},
    "P21-6": {
        "switch_share": everywhere((DSL[-1], FTTC[-1]), BOTH, 0.057, 0.174),
        "switches": at(DSL[-1], BOTH, 11, 35),
    },
    "P21-7": {"rebuffer_ratio": everywhere((DSL[-1], FTTC[-1]), BOTH, 0.015, 0.05)},
}

#: Rows whose primaries ask for no order: they agree if all controllers do the same.
EQUALITIES = {"P13-6", "P14-5", "P14-6", "P15-8..9"}


def reverse(of: Arms) -> Arms:
    """The same values in the opposite order."""
    every = [value for values in of.values() for value in values.values()]
    ends = max(every) + min(every)
    return {at: {name: ends - value for name, value in values.items()} for at, values in of.items()}


def scatter(of: Arms, sign: int) -> Arms:
    """Large values that fall or rise threefold."""
    values = iter(1e9 * 3.0 ** (sign * power) for power in range(sum(map(len, of.values()))))
    return {at: {name: next(values) for name in names} for at, names in of.items()}


def constant(of: Arms, value: float) -> Arms:
    return {at: dict.fromkeys(names, value) for at, names in of.items()}


CHANGES: dict[str, Callable[[Arms], Arms]] = {
    "reversed": reverse,
    "falling": lambda of: scatter(of, -1),
    "rising": lambda of: scatter(of, 1),
    "none": lambda of: constant(of, 0),
    "same": lambda of: constant(of, 4),
}


def change(name: str, how: str) -> dict[str, Arms]:
    return {metric: CHANGES[how](of) for metric, of in PAPERS[name].items()}


def findings(judgement: Judgement) -> tuple[Finding, ...]:
    return (judgement.primary, *judgement.secondary)


def test_every_row_has_a_world() -> None:
    assert list(PAPERS) == list(ROWS)
    assert len(ROWS) == 29


@pytest.mark.parametrize("name", ROWS)
def test_a_world_as_the_paper_says_agrees(name: str) -> None:
    judgement = ROWS[name].judge(world(PAPERS[name]))
    assert [(one.claim, one.outcome, one.text) for one in findings(judgement) if one.outcome != Outcome.AGREES] == []
    assert all(one.within is not False for one in judgement.magnitudes)


@pytest.mark.parametrize("name", ROWS)
def test_a_world_that_is_otherwise_contradicts(name: str) -> None:
    worlds = [ROWS[name].judge(world(change(name, how))) for how in ("reversed", "falling", "rising", "none")]
    for of in zip(*map(findings, worlds), strict=True):
        assert Outcome.CONTRADICTED in {one.outcome for one in of}, of[0].claim


@pytest.mark.parametrize("name", ROWS)
def test_controllers_that_do_the_same_show_no_difference(name: str) -> None:
    metrics = change(name, "same")
    if name == "P14-6":
        ends = ("rtt_p05_s", 0.1), ("rtt_p95_s", 0.12)
        metrics = PAPERS[name] | {metric: arms(["p14-rtt100"], FOUR, value) for metric, value in ends}
    elif name == "P12-3a":
        metrics = {metric: arms(of, (STREAM, NEWRENO), 5e6) for metric, of in PAPERS[name].items()}
    elif name == "P12-5":
        metrics["throughput_bps@35s..60s"] = at("p12-5", (STREAM, CUBIC), 2, 2)
    elif name == "P13-7":
        metrics["lost_packets"] = arms(["p13-7"], SIX, 0)
    expected = Outcome.AGREES if name in EQUALITIES - {"P14-6"} else Outcome.NO_DIFFERENCE
    assert ROWS[name].judge(world(metrics)).primary.outcome == expected


@pytest.mark.parametrize(
    ("name", "values", "jitter"),
    [
        ("P13-6", {"frames_discarded": arms(["p13-6"], SIX, 9.36)}, 0.9),
        ("P14-5", {"capacity_mean_bps": arms(["p14-rtt100"], FOUR, 15e6)}, 0.3),
        ("P14-6", {**PAPERS["P14-6"], "min_rtt_s": arms(["p14-rtt100"], FOUR, 0.105)}, 0.02),
        ("P15-8..9", {"frames_discarded": at(MIDDLE, SHARES, 20, 20, 20) | at(LARGE, SHARES, 11, 11, 11)}, 0.9),
    ],
)
def test_trials_on_both_sides_of_a_margin_decide_nothing(name: str, values: dict[str, Arms], jitter: float) -> None:
    assert ROWS[name].judge(world(values, jitter=jitter)).primary.outcome == Outcome.NO_DIFFERENCE


@pytest.mark.parametrize("name", ROWS)
def test_a_row_without_one_of_its_controllers_is_not_judged(name: str) -> None:
    row, frame = ROWS[name], world(PAPERS[name])
    for missing in row.controllers:
        if (name, missing) in {("P15-4", LB), ("P15-7", HALF)}:
            continue  # only their secondaries have it
        judgement = row.judge(frame.filter(pl.col("controller") != missing))
        assert judgement.primary.outcome is None, missing
        assert judgement.primary.chance is None
    assert row.judge(pl.DataFrame()).primary.outcome is None


@pytest.mark.parametrize("name", ROWS)
def test_chance_is_small_where_the_claim_tells_controllers_or_conditions_apart(name: str) -> None:
    chance = ROWS[name].judge(world(PAPERS[name])).primary.chance
    assert chance is not None
    assert chance == 1 if name in EQUALITIES - {"P15-8..9"} else chance < 0.06


@pytest.mark.parametrize("name", ROWS)
def test_a_single_trial_decides_nothing(name: str) -> None:
    primary = ROWS[name].judge(world(PAPERS[name], trials=1)).primary
    assert primary.outcome == Outcome.NO_DIFFERENCE
    assert (primary.low, primary.high) == (None, None)


@pytest.mark.parametrize(
    ("name", "cases"), [("P12-3a", CASES[::2]), ("P12-3b", CASES[::2]), ("P12-3c", CASES[::2]), ("P21-5", DSL[::3])]
)
def test_fewer_cases_can_be_judged(name: str, cases: tuple[str, ...]) -> None:
    run = pl.format("{}/{}", "scenario", "case").is_in(cases)
    assert ROWS[name].judge(world(PAPERS[name]).filter(run)).primary.outcome == Outcome.AGREES


@pytest.mark.parametrize("name", ROWS)
def test_a_row_says_what_it_is(name: str) -> None:
    row = ROWS[name]
    judgement = row.judge(pl.DataFrame())
    assert row.id == name
    assert row.paper == name.partition("-")[0]
    assert row.test_bed in {"ns2", "kyutech", "mininet"}
    assert row.scenarios
    assert row.quantities
    assert row.says == judgement.primary.claim
    parts: list[Finding | Magnitude] = [*findings(judgement), *judgement.magnitudes]
    for one in parts:
        assert one.place.startswith("Section ")
        assert len(one.quotation) > 5
        assert '"' not in one.quotation
    assert len({one.claim for one in findings(judgement)}) == len(findings(judgement))


@pytest.mark.parametrize("name", ROWS)
def test_scenarios_have_what_a_row_reads(name: str) -> None:
    tomllib = pytest.importorskip("tomllib")
    for scenario in ROWS[name].scenarios:
        file = Path(__file__).parents[2] / "scenarios" / f"{scenario}.toml"
        read = tomllib.loads(file.read_text(encoding="utf-8"))
        assert set(ROWS[name].controllers) <= set(read["controllers"])
        places = [place for of in PAPERS[name].values() for place in of if place.partition("/")[0] == scenario]
        assert {place.partition("/")[2] for place in places} <= {
            case["name"] for case in read.get("case", [{"name": ""}])
        }
        windows = {metric.partition("@")[2] for metric in PAPERS[name] if "@" in metric}
        assert windows <= set(read.get("measure", {}).get("windows", []))


def test_links_are_those_of_the_paper() -> None:
    assert [place.partition("/")[2] for place in (DSL[0], DSL[-1], FTTC[0])] == ["10Mbit-1", "10Mbit-5", "50Mbit-1"]


def test_rows_of_the_loss_guard_are_not_read() -> None:
    controllers = {one for row in ROWS.values() for one in row.controllers}
    assert not any("guard" in one for one in controllers)
    assert {CCP, CCPD2, CCPD4, VS, SSS, LSS, LCA, LB, HALF, TWICE, RENO, COMPOUND, NEW, CWV} < controllers


#: Changes to one part of a primary: the row, and the values that replace the paper's.
BROKEN: list[tuple[str, str, Arms]] = [
    ("P12-3a", RATE, at(ALONE, (STREAM, NEWRENO), 3.5e6, 7e6)),
    ("P12-3a", RATE, everywhere(SHARED[-1:], (STREAM, NEWRENO), 8e6, 9e6)),
    ("P12-3a", RATE, everywhere(SHARED[-1:], (STREAM, NEWRENO), 3e6, 2e6)),
    ("P12-5", "throughput_bps@35s..60s", at("p12-5", (STREAM, CUBIC), 60e6, 80e6)),
    ("P12-5", "throughput_bps@35s..60s", at("p12-5", (STREAM, CUBIC), 8e6, 5e6)),
    ("P13-4", "frames_discarded", at("p13-4", SIX, 900, 300, 800, 200, 600, 550)),
    ("P13-4", "lost_packets", at("p13-4", SIX, 100, 900, 120, 500, 600, 999)),
    ("P13-4L", "frames_discarded", at("p13-4-loss", SIX, 200, 300, 800, 500, 600, 550)),
    ("P13-5", "window_recovery_mean_s", at("p13-4", SIX, 5, 2, 1.5, 1, 1, 1)),
    ("P13-5", "window_recovery_mean_s", at("p13-4", SIX, 5, 2, 4, 3, 1, 1)),
    ("P13-5", "window_spread_bytes", at("p13-4", SIX, 99e3, 60e3, 50e3, 30e3, 10e3, 90e3)),
    ("P13-7", "lost_packets", at("p13-7", SIX, 100, 120, 105, 110, 95, 400)),
    ("P13-7", "lost_packets", at("p13-7", SIX, 100, 900, 50, 160, 400, 300)),
    ("P13-8", "frames_discarded", at("p13-8", SIX, 800, 750, 700, 2, 3, 0)),
    ("P13-9", "underflow_events", at("p13-9", SIX, 1, 0, 2, 3, 30, 0)),
    ("P13-9", "lost_packets", at("p13-9", SIX, 0, 90, 5, 350, 40, 500)),
    ("P13-9", "lost_packets", at("p13-9", SIX, 50, 90, 5, 30, 40, 500)),
    ("P13-10", "underflow_events", at("p13-10", SIX, 50, 2, 1, 1, 40, 60)),
    ("P13-10", "underflow_events", at("p13-10", SIX, 50, 2, 1, 1, 40, 3)),
    ("P13-11", "frames_discarded", at("p13-11", SIX, 9, 0, 2, 6, 7, 8)),
    ("P14-4", "window_first_rtts_bytes[4]", at("p14-rtt100", FOUR, 26e3, 20e3, 90e3, 26e3)),
    ("P14-6", "min_rtt_s", at("p14-rtt100", FOUR, 0.1, 0.12, 0.1, 0.1)),
    ("P14-6", "rtt_p95_s", at("p14-rtt100", FOUR, 0.18, 0.15, 0.11, 0.16)),
    ("P14-7", "frames_discarded", at("p14-rtt100", FOUR, 10, 60, 20, 30)),
    ("P14-7", "frames_discarded", at("p14-rtt100", FOUR, 40, 60, 50, 30)),
    ("P14-8..10", "frames_discarded", at("p14-rtt3", FOUR, 20, 60, 50, 30)),
    ("P14-8..10", "slow_start_entries", at("p14-rtt3", FOUR, 3, 5, 8, 9)),
    ("P15-4", "frames_discarded", at("p15-rtt3", FIVE, 0, 60, 50, 90, 1)),
    ("P15-4", "frames_discarded", at("p15-rtt3", FIVE, 10, 0, 50, 1, 1)),
    ("P15-5", "frames_discarded", at("p15-rtt100", FIVE, 90, 80, 30, 85, 0)),
    ("P15-6", "frames_discarded", at("p15-rtt200", FIVE, 90, 80, 30, 40, 35)),
    ("P15-8..9", "frames_discarded", at(MIDDLE, SHARES, 1, 2, 70)),
    ("P21-4", "smoothed_sd_bps", arms(FTTC, [NEW], 9e6)),
    ("P21-5", "lost_packets", at(DSL[0], BOTH, 300, 200)),
]
#: Changes that must not affect a primary.
FREE: list[tuple[str, str, Arms]] = [
    ("P13-4", "underflow_events", arms(["p13-4"], SIX, 7)),
    ("P13-7", "lost_packets", at("p13-7", SIX, 100, 900, 105, 110, 400, 300)),
    ("P13-9", "lost_packets", at("p13-9", SIX, 0, 90, 5, 30, 40, 5)),
    ("P13-10", "underflow_events", at("p13-10", SIX, 50, 1, 9, 1, 40, 9)),
    ("P15-7", "frames_discarded", at(SMALL, SHARES, 1, 90, 7)),
    ("P15-8..9", "frames_discarded", at(LARGE, SHARES, 90, 90, 90)),
    ("P21-4", "smoothed_sd_bps", everywhere(DSL, BOTH, 9e6, 5e6)),
]


def replaced(name: str, metric: str, of: Arms) -> Outcome | None:
    before = PAPERS[name][metric]
    changed = before | {at: before[at] | values for at, values in of.items()}
    return ROWS[name].judge(world(PAPERS[name] | {metric: changed})).primary.outcome


@pytest.mark.parametrize(("name", "metric", "of"), BROKEN)
def test_each_part_of_a_primary_can_contradict_it(name: str, metric: str, of: Arms) -> None:
    assert replaced(name, metric, of) == Outcome.CONTRADICTED


@pytest.mark.parametrize(("name", "metric", "of"), FREE)
def test_what_the_sentence_does_not_say_decides_nothing(name: str, metric: str, of: Arms) -> None:
    assert replaced(name, metric, of) == Outcome.AGREES
