"""Functions return what `lab` writes, and refuse what is wrong with its words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import playrate_lab
from playrate_lab import BadInputError, LabError


def stored(directory: str) -> list[dict[str, Any]]:
    text = Path(directory, "runs.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_run_returns_every_row_with_its_fields_and_computed_metrics(scenario: str) -> None:
    frame = playrate_lab.run(scenario, trials=3, seed=5, settings={"path.queue": "0.5bdp"}, out="out")
    rows = stored("out")
    assert frame.height == len(rows) == 9
    assert set(rows[0]) <= set(frame.columns)
    for name in ("controller", "seed", "frames_shown", "startup_delay_s", "sent_packets"):
        assert frame.get_column(name).to_list() == [row.get(name) for row in rows]
    assert frame.get_column("seed").unique().sort().to_list() == [5, 6, 7]
    sent = frame.filter(pl.col("controller") == "reno")
    loss = sent.get_column("lost_packets") / sent.get_column("sent_packets")
    assert sent.get_column("loss_ratio").to_list() == pytest.approx(loss.to_list())
    assert frame.get_column("impaired_share").is_between(0, 1).all()
    assert frame.equals(playrate_lab.read("out"))


def test_results_are_kept_only_where_out_says(scenario: str) -> None:
    playrate_lab.run(Path("few.toml"), trials=1)
    assert [path.name for path in Path().iterdir()] == ["few.toml"]
    playrate_lab.run(scenario, trials=1, out="out", series="first")
    assert Path("out/series/few").is_dir()
    with pytest.raises(BadInputError, match="out already holds results"):
        playrate_lab.run(scenario, trials=2, out="out")
    assert playrate_lab.run(scenario, trials=2, out="out", resume=True).height == 6


def test_sweep_returns_rows_with_the_values_as_they_were_given(scenario: str) -> None:
    frame = playrate_lab.sweep(
        scenario, {"loss": ["0%", "gilbert(0.1%,20%)"], "viewer.catch_up_percent": [120, 200]}, out="out"
    )
    assert frame.columns[:2] == ["loss", "viewer.catch_up_percent"]
    assert frame.schema["viewer.catch_up_percent"] == pl.Int64
    counts = frame.group_by("loss", "viewer.catch_up_percent").len()
    assert counts.get_column("len").to_list() == [6, 6, 6, 6]
    assert frame.get_column("case").unique().to_list() == [""]
    assert frame.get_column("seed").to_list() == [row["seed"] for row in stored("out")]
    lossless = frame.filter((pl.col("loss") == "0%") & (pl.col("controller") != "ideal"))
    assert lossless.get_column("random_losses").sum() == 0


def test_claims_has_a_row_for_each_check_and_a_sweep_judges_the_runs_that_are_there(scenario: str) -> None:
    playrate_lab.sweep(scenario, {"queue": ["0.5bdp", "1bdp"]}, out="swept")
    rows = Path("swept/runs.jsonl").read_bytes()
    frame = playrate_lab.sweep_claims(scenario, {"queue": ["0.5bdp", "1bdp"]}, "swept")
    assert Path("swept/runs.jsonl").read_bytes() == rows
    assert frame.get_column("queue").to_list() == ["0.5bdp", "1bdp"]
    assert frame.get_column("claim").unique().to_list() == ["few/discards"]

    playrate_lab.run(scenario, out="out")
    frame = playrate_lab.claims("out", only="few", scenarios=scenario)
    means = {
        name: pl.Series([row["frames_discarded"] for row in stored("out") if row["controller"] == name]).mean()
        for name in ("reno", "cubic")
    }
    (check,) = frame.to_dicts()
    assert check["check"] == "frames_discarded[reno] <= frames_discarded[cubic]"
    assert (check["left"], check["right"]) == pytest.approx((means["reno"], means["cubic"]), rel=1e-5)
    assert check["outcome"] in {"holds", "fails", "undecided"}
    everything = playrate_lab.claims("out")
    assert everything.columns == frame.columns
    assert everything.height > 10


def test_errors_name_the_input(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, wrong in [
        ("`path.speed`", lambda: playrate_lab.run(scenario, settings={"path.speed": 1})),
        ("no scenario", lambda: playrate_lab.run("no scenario")),
        ("has a comma", lambda: playrate_lab.sweep(scenario, {"rate": ["2Mbit/s,1Mbit/s@2s"]})),
        ("a list of values for 'rate'", lambda: playrate_lab.sweep(scenario, {"rate": "2Mbit/s"})),
        ("`over` has no key", lambda: playrate_lab.sweep(scenario, {})),
        ("shards=2", lambda: playrate_lab.run(scenario, shards=2)),
        ("'cloud'", lambda: playrate_lab.run(scenario, engine="cloud")),  # type: ignore[arg-type]
        ("nowhere", lambda: playrate_lab.read("nowhere")),
    ]:
        with pytest.raises(BadInputError, match=words):
            wrong()
    with pytest.raises(LabError, match=r"/no/lab \(the argument `lab`\)"):
        playrate_lab.run(scenario, lab="/no/lab")
    monkeypatch.setenv("PLAYRATE_LAB", "/not/there")
    with pytest.raises(LabError, match=r"/not/there \(the environment variable PLAYRATE_LAB\)"):
        playrate_lab.find_lab()


def test_an_interrupt_keeps_the_runs_that_are_finished(scenario: str) -> None:
    code = f"""
import signal, threading, time
from pathlib import Path
import playrate_lab
def interrupt():
    while not (Path("out/runs.part.jsonl").exists() and Path("out/runs.part.jsonl").stat().st_size > 1000):
        time.sleep(0.01)
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
threading.Thread(target=interrupt).start()
playrate_lab.run({scenario!r}, trials=400, cores=1, out="out")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, timeout=100)
    assert "KeyboardInterrupt" in done.stderr
    kept = playrate_lab.read("out").height
    assert 0 < kept < 1200
    assert playrate_lab.run(scenario, trials=3, out="out", resume=True).height >= kept
