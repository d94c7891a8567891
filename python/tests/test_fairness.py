"""Shares, Jain's index, harm and score of pairs on rows that are made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from playrate_lab import fairness


def pair(
    viewer: str, download: str, rates: tuple[float, float], scenario: str = "fairness-needy"
) -> list[dict[str, Any]]:
    """Return the rows of a viewer and a download over ten seconds at these rates in Mbit/s."""
    run = {
        "scenario": scenario,
        "case": f"bulk.controller={download}",
        "scenario_hash": download,
        "controller": viewer,
        "seed": 1,
        "outcome": "complete",
        "download_s": 10.0,
        "link_rate_bps": 20_000_000,
    }
    own, other = (int(rate * 1e6 * 10 / 8) for rate in rates)
    shares = {"waiting_share": 0.25, "skipping_share": 0.75}
    title = 15_000_000 if scenario == "fairness-needy" else 4_000_000
    flow = {"role": "viewer", "viewer": 0, "flow_controller": viewer, "received_bytes": own, "title_rate_bps": title}
    bulk = {"role": "bulk", "viewer": 1, "flow_controller": download, "received_bytes": other, "title_rate_bps": 0}
    return [{**run, **flow, **shares}, {**run, **bulk}]


ROWS = [
    *pair("cubic", "cubic", (10, 10)),
    *pair("vegas", "cubic", (2, 18)),
    *pair("cubic", "vegas", (18, 2)),
    *pair("vegas", "vegas", (8, 8)),
    *pair("vegas", "bbr", (0, 0)),
    *pair("vegas", "cubic", (4, 15), "fairness-calm"),
]


def test_numbers_are_those_of_each_pair() -> None:
    found = {(one["demand"], one["controller"], one["download"]): one for one in fairness.pairs(ROWS).to_dicts()}
    assert len(found) == 6
    gentle, greedy = found["needy", "vegas", "cubic"], found["needy", "cubic", "vegas"]
    assert (gentle["viewer_bps"], gentle["download_bps"]) == (2e6, 18e6)
    assert (gentle["viewer_share"], gentle["download_share"]) == pytest.approx((0.1, 0.9))
    assert gentle["jain"] == pytest.approx(400 / (2 * (4 + 324)))
    assert gentle["score"] == pytest.approx(0.5)
    # vegas is gentler to cubic than another cubic is; cubic takes three quarters of what vegas leaves vegas.
    assert [gentle["harm"], greedy["harm"]] == pytest.approx([-0.8, 0.75])
    assert found["needy", "cubic", "cubic"]["harm"] == 0
    assert found["needy", "cubic", "cubic"]["jain"] == 1
    # bbr was not run with its own kind, and two flows without a byte have no index.
    assert (found["needy", "vegas", "bbr"]["harm"], found["needy", "vegas", "bbr"]["jain"]) == (None, None)
    calm = found["calm", "vegas", "cubic"]
    assert (calm["harm"], calm["title_bps"], calm["link_bps"]) == (None, 4e6, 20e6)


def test_trials_are_added_up() -> None:
    longer = [{**row, "download_s": 30.0, "received_bytes": 0} for row in pair("cubic", "cubic", (10, 10))]
    (one,) = fairness.pairs([*pair("cubic", "cubic", (10, 10)), *longer]).to_dicts()
    assert (one["viewer_bps"], one["download_bps"]) == (2.5e6, 2.5e6)


def test_other_rows_and_two_paths_are_refused() -> None:
    with pytest.raises(ValueError, match="no rows of the scenarios fairness-needy and fairness-calm"):
        fairness.pairs([{**row, "scenario": "other"} for row in ROWS])
    twice = [{**row, "case": "deep"} for row in ROWS[:2]]
    with pytest.raises(ValueError, match="several paths"):
        fairness.pairs([*ROWS, *twice])


def test_the_command_prints_tables_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    fairness.main([str(tmp_path)])
    printed = capsys.readouterr().out
    assert "Title of 15 Mbit/s: both want all" in printed
    tables = [[line.split() for line in table.splitlines()[1:]] for table in printed.split("\n\n")]
    assert tables[0] == [
        ["cubic", "vegas", "bbr"],
        ["cubic", "50/50", "90/10", "-"],
        ["vegas", "10/90", "40/40", "0/0"],
    ]
    assert tables[2][2] == ["vegas", "-80", "0", "-"]
    assert tables[4] == [["cubic"], ["vegas", "50.0"]]
    fairness.main([str(tmp_path), "--json"])
    assert json.loads(capsys.readouterr().out) == fairness.pairs(ROWS).to_dicts()
    with pytest.raises(SystemExit, match="1"):
        fairness.main([str(tmp_path / "none")])
    assert "runs.jsonl" in capsys.readouterr().err
    old = [{name: value for name, value in row.items() if name != "link_rate_bps"} for row in ROWS]
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, old)), encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        fairness.main([str(tmp_path)])
    assert "a row has no field 'link_rate_bps'" in capsys.readouterr().err
