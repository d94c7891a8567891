"""Scores, ranks and regret on rows that are made by hand, and on rows whose numbers are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from playrate_lab import scores


def row(controller: str, share: float, **others: object) -> dict[str, Any]:
    """Return a viewer's row of 1,000 packets: 20 declared lost, 10 of them lost by the path."""
    return {
        "scenario": "path",
        "scenario_hash": "0",
        "controller": controller,
        "outcome": "complete",
        "waiting_share": share,
        "skipping_share": share,
        "sent_packets": 1_000,
        "lost_packets": 20,
        "random_losses": 10,
        "retry_losses": 0,
        "link_packets": 990,
        "mean_queue_delay_s": 0.02,
        "rtt_mean_s": 0.06,
        "path_rtt_s": 0.05,
        "fits": True,
        **others,
    }


def download(controller: str, bps: float) -> dict[str, Any]:
    return {**row(controller, 0), "role": "bulk", "compared_bytes": bps * 10 / 8, "compared_s": 10}


def test_a_score_is_the_mean_of_both_shares_and_of_a_ladder_the_impaired_share() -> None:
    assert scores.score(row("cubic", 0.1, skipping_share=0.3)) == pytest.approx(0.2)
    assert scores.score(row("cubic", 0.1, outcome="failed")) == 1.0
    assert scores.score(row("cubic", 0.1, role="bulk")) is None
    ladder = row("cubic", 0, waiting_share=None, title_duration_s=4.0, frames=100, frozen_s=1.0)
    counts = {"frames_shown": 75, "frames_discarded": 20, "frames_missing": 5}
    assert scores.score({**ladder, **counts}) == 0.25
    assert scores.score({**ladder, **counts, "frames_shown": 100, "frames_discarded": 0}) == pytest.approx(0.2)
    assert scores.score({**ladder, **counts, "frames_shown": 0}) == 1.0


def test_ranks_are_in_steps_and_ties_share_the_mean_of_theirs() -> None:
    rows = [row("a", 0.0001), row("b", 0.0), row("c", 0.1), row("d", 0.0, lost_packets=50)]
    at = scores.cells(rows)["path", ""]
    assert {controller: cell.rank for controller, cell in at.items()} == {"a": 1.5, "b": 1.5, "c": 4, "d": 3}
    adaptive = [row("low", 0, segments=9, mean_bitrate_bps=1e6), row("high", 0, segments=9, mean_bitrate_bps=2e6)]
    at = scores.cells(adaptive)["path", ""]
    assert (at["high"].rank, at["low"].rank, at["low"].bitrate_bps) == (1, 2, 1e6)


def test_regret_is_over_places_that_fit_and_where_all_have_results() -> None:
    rows = [row("cubic", 0.3), row("vegas", 0.1, mean_queue_delay_s=0.01)]
    rows += [{**one, "scenario": "tight", "fits": False} for one in rows]
    rows += [row("cubic", 0.0, scenario="only")]
    vegas, cubic = scores.regrets(scores.cells(rows))
    assert (vegas.controller, vegas.mean, vegas.first_share) == ("vegas", 0.0, 1.0)
    assert cubic.mean == pytest.approx(0.2)
    assert cubic.worst[0] == pytest.approx(0.2)
    assert cubic.worst[1] == "path"
    assert (cubic.paths, cubic.paths_left_out, cubic.first_share) == (1, 1, 0.0)
    assert cubic.queueing_of_vegas == pytest.approx(2)
    assert cubic.lost_beyond_own == pytest.approx(0.01)
    assert cubic.lost_beyond_own_unimpaired is None
    # Second of two on the two paths, first of one on the other.
    assert cubic.mean_rank == pytest.approx((2 + 2 + 1) / 3)


def test_downloads_are_compared_with_those_of_cubic_and_queueing_is_the_senders() -> None:
    rows = [row("cubic", 0), download("cubic", 4e6), row("video", 0), download("video", 3e6)]
    by_name = {one.controller: one for one in scores.regrets(scores.cells(rows))}
    assert by_name["video"].others_of_cubic == pytest.approx(0.75)
    worst = by_name["video"].others_of_cubic_worst
    assert worst is not None
    assert worst[1] == "path"
    assert by_name["video"].queueing_s == pytest.approx(0.01)


def test_rows_of_two_versions_or_of_an_older_program_are_refused() -> None:
    with pytest.raises(ValueError, match="two versions of scenario path"):
        scores.cells([row("a", 0), row("b", 0, scenario_hash="1")])
    old = row("a", 0)
    del old["fits"]
    with pytest.raises(ValueError, match="run it again"):
        scores.cells([old])


def test_the_command_prints_a_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row("ideal", 0), row("cubic", 0.3), row("vegas", 0.1)]
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    scores.main([str(tmp_path)])
    table = capsys.readouterr().out.splitlines()
    assert table[1].endswith("vegas (worst: path)")
    assert table[2].split()[:3] == ["2.00", "20.00%", "20.00%"]
    scores.main([str(tmp_path), "--json"])
    assert [one["controller"] for one in json.loads(capsys.readouterr().out)] == ["vegas", "cubic"]
    with pytest.raises(SystemExit, match="1"):
        scores.main([str(tmp_path / "none")])
    assert "runs.jsonl" in capsys.readouterr().err
