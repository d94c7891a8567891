"""The page states the results of the values, and nothing that a reader cannot check."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from papers import page, runs, unknowns
from papers.__main__ import main
from papers.judge import TERMS, Outcome
from papers.rows import ROWS
from papers.search import declared
from papers.unknowns import BadInputError, TestBed


def made(bed: TestBed, seed: int) -> pl.DataFrame:
    """Return made-up rows of every scenario of a test bed."""
    source, rows = random.Random(seed), []
    for scenario in runs.scenarios_of(bed.fit + bed.judge):
        tables = unknowns.scenario_file(scenario)
        windows = tables.get("measure", {}).get("windows", [])
        for case in [case["name"] for case in tables.get("case", [])] or [""]:
            for controller in ("ideal", *runs.controllers_of(scenario)):
                for flow in range(6 if windows else 3):
                    row: dict[str, Any] = {"scenario": scenario, "case": case, "controller": controller}
                    row |= {"seed": flow % 3 + 1, "role": "bulk" if flow >= 3 else "viewer", "outcome": "complete"}
                    fields = set(runs.metrics_of(bed, scenario)) | {"sent_packets", "frames"}
                    fields -= {"windows", "window_first_rtts_bytes"}
                    # In one order, so that the values are the same in every process.
                    row |= {name: 10 * source.random() for name in sorted(fields)}
                    # A viewer ends after it started: the kept digits of a difference near zero are few.
                    row |= {"ended_s": row["ended_s"] + 60} if "ended_s" in fields else {}
                    row["window_first_rtts_bytes"] = [source.randrange(99) for _ in range(5)]
                    one = {name: 100 * source.random() for name in runs.WINDOW_FIELDS}
                    row |= {"windows": [{"window": name, **one} for name in windows]} if windows else {}
                    rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def outcome(bed: TestBed) -> dict[str, Any]:
    """Return the outcome of a made-up search."""
    rows = [*bed.fit, *bed.judge]
    scores = [number / 10 for number in range(6)]
    landscape = {one.name: [{"value": "a", "worlds": 3, "mean": 0.1}] for one in bed.unknowns}
    return {
        "test_bed": bed.name,
        "declared": declared(bed),
        "seed": 1,
        "world": bed.random_world(1),
        "tried": 300,
        "within_axes": 12,
        "free_axes": [axis.name for axis in bed.axes[:1]],
        "seen": [f"{row}/0" for row in bed.fit],
        "scores": {"nominal": 0.1, "random": scores, "search": scores, "fitted": 0.5},
        "landscape": landscape,
        "robustness": {f"{row}/{number}": {"agrees": 3, "of": 12} for row in rows for number in range(4)},
        "best": [],
    }


@pytest.fixture(autouse=True)
def summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the summary's statements about the committed values, because the values here are made up."""
    text = re.sub(r"\{([^{}=]+)=[^{}]*\}", r"{\1}", page.SUMMARY.read_text(encoding="utf-8"))
    (tmp_path / "summary.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(page, "SUMMARY", tmp_path / "summary.md")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with made-up values, outcomes of searches, and the summary."""
    directory = tmp_path_factory.mktemp("papers")
    for name in unknowns.names():
        bed = unknowns.load(name)
        worlds = {world: runs.aggregated(made(bed, number)) for number, world in enumerate(runs.JUDGED)}
        (directory / "values").mkdir(exist_ok=True)
        runs.write_values(directory / "values" / f"{name}.csv", worlds)
        (directory / "fitted").mkdir(exist_ok=True)
        (directory / "fitted" / f"{name}.json").write_text(json.dumps(outcome(bed)))
    return directory


@pytest.fixture(scope="module")
def inputs(kept: Path) -> page.Inputs:
    """Return the inputs of the page."""
    return page.Inputs.read(kept / "values", kept / "fitted")


def test_values_that_are_kept_give_the_same_outcomes(tmp_path: Path) -> None:
    for name in unknowns.names():
        bed = unknowns.load(name)
        rows = made(bed, 7)
        path = tmp_path / f"{name}.csv"
        runs.write_values(path, {"nominal": runs.aggregated(rows)})
        written, read = path.read_bytes(), runs.read_values(path)["nominal"]
        runs.write_values(path, {"nominal": read})
        assert path.read_bytes() == written, "another world's values change when one is added"
        for row in bed.fit + bed.judge:
            before, after = ROWS[row].judge(rows), ROWS[row].judge(read)
            for one, other in zip((before.primary, *before.secondary), (after.primary, *after.secondary), strict=True):
                assert one.outcome is not None, row
                assert (one.outcome, one.quantity) == (other.outcome, other.quantity), row
                assert one.estimate == pytest.approx(other.estimate, rel=1e-4, abs=1e-6), row


def test_values_of_a_failed_flow_are_no_values() -> None:
    flows: list[dict[str, Any]] = [
        {"outcome": "complete", "lost_packets": 2, "switches": 4},
        {"outcome": "failed", "switches": None},
    ]
    keys: dict[str, Any] = {"scenario": "p21-dash", "case": "", "controller": "a", "seed": 1, "role": "viewer"}
    kept = runs.aggregated(pl.DataFrame([{**keys, **flow} for flow in flows])).to_dicts()
    assert kept == [{**keys, "outcome": "failed", "lost_packets": None, "switches": None}]
    assert "lost_packets" in {field for fields in TERMS.values() for field in fields}


def test_page_is_whole_and_narrow(inputs: page.Inputs, kept: Path) -> None:
    texts = page.files(inputs, kept)
    text = texts[kept / "results.md"]
    assert not re.search(r"\{\w|None|nan|inf\b", text), "a placeholder or a missing number is left"
    for row in ROWS.values():
        assert f"### {row.id}\n" in text
        assert row.says in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert max(len(cell.strip()) for cell in line.split("|")) <= 120, line
        elif "](" not in line:
            assert len(line) <= 120, line
    assert text.count("figures/search-") == 3
    headings = {re.sub(r"[^\w -]", "", line.lstrip("# ").lower()) for line in text.splitlines() if line.startswith("#")}
    assert set(re.findall(r"\]\(#(.+?)\)", text)) <= headings


def test_data_has_every_row(inputs: page.Inputs) -> None:
    data = json.loads(json.dumps(page.fidelity(inputs)))
    assert [row["id"] for row in data["rows"]] == list(ROWS)
    for row in data["rows"]:
        assert row["judged"] == (row["id"] in unknowns.load(row["test_bed"]).judge)
        assert row["primary"]["fitted"]["outcome"] in list(Outcome)
        assert row["robustness"] == {"agrees": 3, "of": 12}
    counted = data["counts"]["all"]["primaries"]
    assert counted["of"] == len(ROWS) == sum(counted["nominal"].values())
    papers = [data["counts"][paper]["secondaries"]["of"] for paper in ("P12", "P13", "P14", "P15", "P21")]
    assert sum(papers) == data["counts"]["all"]["secondaries"]["of"]


def test_missing_worlds_are_said_to_be_missing(kept: Path, tmp_path: Path) -> None:
    bed = unknowns.load("ns2")
    runs.write_values(tmp_path / "ns2.csv", {"nominal": runs.aggregated(made(bed, 1))})
    inputs = page.Inputs.read(tmp_path, tmp_path)
    assert page.fidelity(inputs)["counts"]["all"]["primaries"]["of"] == 4
    text = page.files(inputs, kept)[kept / "results.md"]
    assert "No search has been made." in text
    assert "Not run." in text
    with pytest.raises(BadInputError, match="no values"):
        page.Inputs.read(tmp_path / "nothing")


def test_claims_that_lack_values_are_not_measured(tmp_path: Path) -> None:
    rows = made(unknowns.load("ns2"), 1).filter(pl.col("scenario") != "p12-5")
    runs.write_values(tmp_path / "ns2.csv", {"nominal": runs.aggregated(rows)})
    data = page.fidelity(page.Inputs.read(tmp_path, tmp_path))
    outcomes = {row["id"]: row["primary"]["nominal"]["outcome"] for row in data["rows"] if row["test_bed"] == "ns2"}
    assert {row for row, found in outcomes.items() if found == "not measured"} == {"P12-5"}
    assert sum(data["counts"]["P12"]["primaries"]["nominal"].values()) == 3


def test_search_of_other_unknowns_is_refused(kept: Path, tmp_path: Path) -> None:
    for name in unknowns.names():
        (tmp_path / f"{name}.json").write_text(json.dumps({**outcome(unknowns.load(name)), "declared": "other"}))
    with pytest.raises(BadInputError, match="other declared unknowns"):
        page.Inputs.read(kept / "values", tmp_path)


def test_placeholders_are_checked() -> None:
    names = {"all.primaries": "29", "P13-4.fitted": "agrees"}
    assert page.filled("<!-- how -->\n{all.primaries} rows", names) == "29 rows"
    assert page.filled("{P13-4.fitted=agrees}", names) == "agrees"
    with pytest.raises(BadInputError, match="says 'contradicted'"):
        page.filled("{P13-4.fitted=contradicted}", names)
    with pytest.raises(BadInputError, match=re.escape("unknown placeholder `{all.rows}`")):
        page.filled("{all.rows}", names)
    with pytest.raises(BadInputError, match="at most 10"):
        page.filled("- one\n" * 11, names)
    assert page.rewrapped(f"- {'word ' * 40}\n- next\n").count("\n  word") == 1


def test_command_writes_and_checks(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["page", "--values", str(kept / "values"), "--fitted", str(kept / "fitted"), "--docs", str(kept)]
    assert main([*command, "--check"]) == 1
    assert main(command) == 0
    assert main([*command, "--check"]) == 0
    drawn = {path.stem for path in (kept / "figures").glob("*.svg")}
    assert len(drawn) == len(ROWS) + 3
    assert set(re.findall(r"figures/(.+?)\.svg", (kept / "results.md").read_text())) == drawn
    (kept / "results.md").write_text("changed")
    assert main([*command, "--check"]) == 1
    assert "results.md does not match the values" in capsys.readouterr().err


def test_bad_input_ends_with_2(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["search", "nowhere"]) == 2
    assert "unknown test bed `nowhere`; expected one of: kyutech, mininet, ns2" in capsys.readouterr().err
    assert main(["run", "ns2", "--jobs", "0"]) == 2
    assert main(["page", "--values", str(tmp_path)]) == 2
    with pytest.raises(SystemExit) as ended:
        main(["page", "--nonsense"])
    assert ended.value.code == 2


@pytest.mark.parametrize("command", ["", "run", "search", "page"])
def test_help_teaches(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*([command] if command else []), "--help"])
    assert ended.value.code == 0
    assert len(capsys.readouterr().out.splitlines()) > 10
