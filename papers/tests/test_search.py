"""A search gives the same worlds however it is made, and sees only what was declared."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from papers import runs, unknowns
from papers import search as searching
from papers.judge import Finding, Outcome
from papers.rows import ROWS
from papers.search import Result, Task, View, claims, declared, reach, search, summary, twice
from papers.unknowns import BadInputError, parse, with_argument, with_component

if TYPE_CHECKING:
    from collections.abc import Callable

BED: dict[str, Any] = {
    "about": "Made up.",
    "search": {"worlds": 30, "random": 8, "batch": 5, "seed": 3, "best": 3, "trials": 2},
    "fit": {"rows": ["A", "B"]},
    "judge": {"rows": ["C"], "quantities": ["underflow"], "why": "Made up."},
    "axis": [{"scenario": "p13-7", "metric": "lost_packets", "most": 100, "place": "nowhere"}],
    "unknown": [
        {"name": "queue", "why": "-", "key": "path.queue", "range": [50, 1000], "log": True, "form": "{}packets"},
        {"name": "larger", "why": "-", "key": "path.rate", "range": [1.1, 1.3], "form": "{}λ"},
        {"name": "udp", "why": "-", "key": "path.cross_traffic", "choices": [["a"], ["b"]]},
        {"name": "counting", "why": "-", "argument": "counting", "of": ["ccp"], "choices": ["bytes", "acks"]},
    ],
}
TRIED = Path("tried")


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches need no program because the results are made up."""
    monkeypatch.setattr(searching, "program", lambda: "lab 0.1.0")


def cheap(task: Task, stop_at: int = 0, log: Path = TRIED) -> Result:
    """Return a made-up result at once; fail at the given number of calls over all processes."""
    with log.open("a") as file:
        file.write(".")
    if stop_at and log.stat().st_size >= stop_at:
        raise RuntimeError("stopped")
    queue, larger = float(str(task.world.get("queue", 250))), float(str(task.world.get("larger", 1.2)))
    estimate = 1 - abs(math.log(queue / 300)) + (task.world.get("udp") == ["b"]) * 0.5
    found = {"margin": None, "quantity": "frames_discarded"}
    findings = {
        "A/0": {**found, "agrees": estimate > 0, "estimate": estimate},
        "A/1": {**found, "agrees": True, "estimate": 5.0, "quantity": "underflow_events"},
        "B/0": {**found, "agrees": larger < 1.2, "estimate": larger, "margin": 1.2},
    }
    if "C" in task.rows:
        findings["C/0"] = {**found, "agrees": queue > 500, "estimate": queue - 500}
    return {"findings": findings, "axes": {"p13-7/lost_packets": queue / 5}}


def outcome(directory: Path, processes: int, evaluate: Callable[[Task], Result] | None = None) -> tuple[Any, bytes]:
    """Return the outcome of a search, and the content of its files."""
    directory.mkdir(exist_ok=True)
    made = search(
        parse("made", BED),
        directory,
        processes=processes,
        evaluate=evaluate or functools.partial(cheap, log=directory / "tried"),
    )
    return made, (directory / "trials.jsonl").read_bytes() + (directory / "best.jsonl").read_bytes()


def test_processes_and_interruptions_change_nothing(tmp_path: Path) -> None:
    alone = outcome(tmp_path / "alone", 1)
    assert outcome(tmp_path / "beside", 2) == alone
    broken = tmp_path / "broken"
    # In the middle of a batch of the random sample, of the search and of the best worlds, and within a line.
    for stop_at, processes in ((4, 2), (17, 1), (31, 2), (35, 1)):
        broken.mkdir(exist_ok=True)
        (broken / "tried").unlink(missing_ok=True)
        known = sum(len(path.read_text().splitlines()) - 1 for path in broken.glob("*.jsonl"))
        stopping = functools.partial(cheap, stop_at=stop_at - known, log=broken / "tried")
        with pytest.raises(RuntimeError, match="stopped"):
            outcome(broken, processes, stopping)
        with (broken / "trials.jsonl").open("a") as file:
            file.write('{"number": 99, "wor')
    (broken / "tried").unlink()
    assert outcome(broken, 2) == alone
    assert (broken / "tried").stat().st_size < (tmp_path / "alone" / "tried").stat().st_size / 2


def test_outcome(tmp_path: Path) -> None:
    made, _ = outcome(tmp_path, 2)
    assert made["tried"] >= 30
    assert made["seen"] == ["A/0", "B/0"], "an underflow or a judged row was seen"
    assert made["scores"]["fitted"] == max(made["scores"]["random"] + made["scores"]["search"])
    assert made["robustness"]["C/0"]["of"] == 8
    assert sum(one["worlds"] for one in made["landscape"]["queue"]) == 8
    assert len(made["scores"]["random"]) == 8


def test_store_of_another_declaration_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome(tmp_path, 1)
    other = parse("made", {**BED, "search": {**BED["search"], "seed": 4}})
    with pytest.raises(BadInputError, match="declared"):
        search(other, tmp_path, processes=1, evaluate=cheap)
    monkeypatch.setattr(searching, "claims", lambda: "changed")
    with pytest.raises(BadInputError, match=r"trials\.jsonl was made with other claims"):
        outcome(tmp_path, 1)
    reworded = parse("made", {**BED, "about": "The same in other words."})
    assert declared(reworded) == declared(parse("made", BED))


def test_hash_of_claims_is_that_of_their_functions(tmp_path: Path) -> None:
    for name in ("p12.py", "page.py", "judge.py"):
        (tmp_path / name).write_text("1", encoding="utf-8")
    first = claims(tmp_path)
    (tmp_path / "page.py").write_text("2", encoding="utf-8")
    assert claims(tmp_path) == first
    (tmp_path / "p12.py").write_text("2", encoding="utf-8")
    assert claims(tmp_path) != first


@pytest.mark.parametrize(
    ("hashes", "names", "words"),
    [
        (["old", "new"], ["reno", "reno"], "p15-pob has rows of another version of p15-pob; remove it"),
        (["new"], ["reno", "cubic"], r"the rows have 2; .*p15-pob has .*; remove it"),
    ],
)
def test_rows_of_another_version_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hashes: list[str], names: list[str], words: str
) -> None:
    made = pl.DataFrame({"case": "", "controller": names, "seed": 1, "trial": 1, "viewer": 0})
    made = made.join(pl.DataFrame({"scenario_hash": hashes}), how="cross")
    monkeypatch.setattr(runs, "lab_run", lambda *_, **__: made)
    with pytest.raises(BadInputError, match=words):
        runs.make(unknowns.load("kyutech"), {}, ["p15-pob"], quick=True, most_trials=1, out=tmp_path)


def test_score_counts_agreement_and_distance() -> None:
    found = {"quantity": "x", "margin": None, "estimate": 1.0, "agrees": True}
    bed = parse("made", BED)
    view = View.of(bed, [{"findings": {"A/0": found, "B/0": {**found, "quantity": "underflow_events"}}, "axes": {}}])
    assert view.claims == ("A/0",)

    def score(**changed: object) -> float:
        return view.score({"findings": {"A/0": {**found, **changed}}, "axes": {}})

    assert score() == 1
    assert score(estimate=0.5) == 0.75
    assert score(estimate=-0.5, agrees=False) == -0.75
    assert score(estimate=4.0, margin=1.0, agrees=False) == -0.75
    assert score(estimate=None) == -1
    assert view.score({"findings": {}, "axes": {}, "error": "lab"}) == -1
    assert view.beyond({"findings": {}, "axes": {}, "error": "lab"}) > 1
    assert view.beyond({"findings": {}, "axes": {"p13-7/lost_packets": 100}}) == 0


@pytest.mark.parametrize(("values", "constrains"), [([100.0] + 9 * [101.0], True), ([100.0] + 10 * [101.0], False)])
def test_an_axis_that_less_than_a_tenth_of_the_sample_keeps_constrains_nothing(
    values: list[float], constrains: bool
) -> None:
    sample = [{"findings": {}, "axes": {"p13-7/lost_packets": value}} for value in values]
    view = View.of(parse("made", BED), sample)
    assert (view.beyond({"findings": {}, "axes": {"p13-7/lost_packets": 200.0}}) > 0) is constrains


def test_one_trial_is_decided_by_its_mean() -> None:
    scenario, controllers = ROWS["P15-7"].scenarios[0], ROWS["P15-7"].controllers
    discards = dict(zip(controllers, (10, 11, 40), strict=True))
    rows = pl.DataFrame(
        {
            "scenario": scenario,
            "case": "pob448",
            "controller": name,
            "seed": 1,
            "role": "viewer",
            "outcome": "complete",
            "frames_discarded": discards.get(name, 0),
            "frames": 18720,
            "underflow_events": 0,
            "underflows_per_minute": 0.0,
        }
        for name in (*controllers, "ideal")
    )
    judgement = ROWS["P15-7"].judge(twice(rows))
    assert summary(judgement.primary) == {
        "agrees": True,
        "estimate": 30,
        "margin": None,
        "quantity": "frames_discarded",
    }
    assert not summary(judgement.secondary[0])["agrees"], "nobody has an underflow"
    assert summary(judgement.secondary[2])["agrees"]
    assert reach(rows, unknowns.Axis(scenario, "frames_discarded", 100, "")) == 40
    assert reach(rows, unknowns.Axis("p13-7", "frames_discarded", 100, "")) is None
    missing = Finding("", "", "", None, None, None, None, "", None, None, "")
    assert summary(missing)["estimate"] is None
    assert summary(Finding("", "", "", Outcome.AGREES, 2.0, 1.0, 3.0, "", 1.0, None, ""))["agrees"]


def test_spec_of_a_world() -> None:
    assert with_argument("ccp(1)+loss=ignore", "counting", "acks") == "ccp(1,counting=acks)+loss=ignore"
    assert with_argument("reno", "counting", "acks") == "reno(counting=acks)"
    assert with_argument("ccp(floor=1)", "floor", "3") == "ccp(floor=3)"
    hystart = "hystart(spacing=6ms)"
    assert with_component("cubic(off)+start=hystartpp", "start", hystart) == f"cubic(off)+start={hystart}"
    bed = unknowns.load("kyutech")
    world: unknowns.World = {"counting": "acks", "growth": "ratelimited", "larger": 1.25, "loss": 1, "late": 40}
    assert bed.spec(world, "p13-6", "ccp-lb(2)+loss=ignore") == "ccp-lb(2,counting=acks)+loss=ignore"
    assert bed.spec(world, "p13-6", "cubic") == "cubic(counting=acks,growth=ratelimited)"
    assert bed.settings(world, "p13-6") == {"path.rate": "1.25λ", "viewer.late": "40ms"}
    assert bed.settings(world, "p13-8") == bed.settings(world, "p13-6"), "a nominal value changes nothing"
    assert bed.settings(world, "p13-9") == {"viewer.late": "40ms"}
    bulk = unknowns.load("ns2").settings({"counting": "acks", "udp": ["poisson(27Mbit/s)"]}, "p12-3")
    assert bulk == {
        "path.cross_traffic": '["poisson(27Mbit/s)"]',
        "bulk.controller": "reno(max_ssthresh=0,counting=acks)",
    }


@pytest.mark.parametrize("name", unknowns.names())
def test_declared_test_beds(name: str) -> None:
    bed = unknowns.load(name)
    rows = [row.id for row in ROWS.values() if row.test_bed == name]
    assert sorted(bed.fit + bed.judge) == sorted(rows), "each row is either fitted or judged"
    scenarios = set(runs.scenarios_of(rows))
    for one in bed.unknowns:
        assert set(one.only) <= scenarios, one.name
        controllers = {name for scenario in scenarios for name in runs.controllers_of(scenario)}
        assert one.key or any(one.changed(name, "x") != name for name in controllers), one.name
        assert all(value == one.nominal for value in _written(one)), f"{one.name}: {_written(one)}"
    assert bed.search.worlds >= 300
    assert {axis.scenario for axis in bed.axes} <= scenarios
    assert bed.random_world(1) == bed.random_world(1) != bed.random_world(2)
    for row in bed.fit:
        assert any(bed.sees(row, quantity) for quantity in ROWS[row].quantities), f"{row} is seen by nobody"


def _written(unknown: unknowns.Unknown) -> list[Any]:
    """Return the values of an unknown's key that its scenarios write down, if it has a nominal one."""
    found = []
    for scenario in unknown.only if unknown.key and unknown.nominal is not None else ():
        value: Any = unknowns.scenario_file(scenario)
        for part in str(unknown.key).split("."):
            value = value.get(part) if isinstance(value, dict) else None
        found += [value] if value is not None else []
    return found
