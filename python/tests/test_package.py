"""Functions return the results of `lab`, and raise its errors for bad input."""

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
from playrate_lab import BadInputError, LabError, _frames, _ray


def stored(directory: str) -> list[dict[str, Any]]:
    text = Path(directory, "runs.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_run_returns_every_row_with_its_fields_and_computed_metrics(scenario: str) -> None:
    frame = playrate_lab.run(scenario, trials=3, seed=5, settings={"path.queue": "0.5bdp"}, out="out")
    rows = stored("out")
    assert frame.height == len(rows) == 9
    assert frame.columns[: len(rows[0])] == list(rows[0])
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


def test_controllers_replace_those_of_the_scenario(scenario: str) -> None:
    frame = playrate_lab.run(scenario, controllers=["vegas", "video(pace=3,queue=5ms)"], trials=1)
    assert set(frame.get_column("controller")) == {"ideal", "vegas", "video(pace=3,queue=5ms)"}
    frame = playrate_lab.sweep(scenario, {"queue": ["1bdp"]}, controllers="vegas", trials=1)
    assert set(frame.get_column("controller")) == {"ideal", "vegas"}


def test_read_joins_directories_and_counts_a_run_once(scenario: str) -> None:
    whole = playrate_lab.run(scenario, out="whole")
    playrate_lab.run(scenario, trials=1, out="first")
    playrate_lab.run(scenario, trials=2, seed=1, controllers="cubic", out="second")
    joined = playrate_lab.read("first", "second")
    assert joined.height == whole.height - 1
    assert joined.filter(controller="cubic").equals(whole.filter(controller="cubic"))


def test_stored_rows_are_those_of_interrupted_runs_too_each_once(tmp_path: Path) -> None:
    row = dict.fromkeys(("scenario", "case", "scenario_hash", "controller"), "x") | {"seed": 1, "viewer": 0, "sent": 1}
    other, again = {**row, "viewer": 1}, {**row, "sent": 2}

    def write(name: str, *rows: dict[str, Any], end: str = "") -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)) + end, encoding="utf-8")

    write("one/runs.jsonl", row, other)
    write("one/runs.part.jsonl", again, end='\n{"scenario": "to')
    write("two/runs.part.jsonl", again)
    assert list(_frames.stored(tmp_path / "one", tmp_path / "two")) == [again, other]
    write("two/runs.part.jsonl", row)
    with pytest.raises(BadInputError, match=r"the rows of x x x x 1 0 in .*two differ"):
        list(_frames.stored(tmp_path / "one", tmp_path / "two"))


def test_shards_of_another_plan_are_kept(tmp_path: Path) -> None:
    plan, shard = tmp_path / "shards" / "plan.json", tmp_path / "shards" / "1"
    _ray._keep_plan(plan, "one")
    shard.mkdir()
    _ray._keep_plan(plan, "one")
    with pytest.raises(BadInputError, match="has shards of other arguments"):
        _ray._keep_plan(plan, "other")
    assert sorted(path.name for path in plan.parent.iterdir()) == ["1", "plan.json"]
    assert plan.read_text(encoding="utf-8") == "one"


def test_curves_are_the_series_of_each_flow(scenario: str) -> None:
    settings = {"bulk.controller": "reno", "viewer.count": 2}
    playrate_lab.run(scenario, settings=settings, over={"queue": ["1bdp", "2bdp"]}, series="all", out="out")
    windows = playrate_lab.curves("out", controllers="cubic", cases=["queue=2bdp"])
    assert windows.columns[:7] == ["directory", "scenario", "case", "controller", "seed", "viewer", "at_s"]
    assert set(windows.select("seed", "viewer").unique().rows()) == {(1, 0), (1, 1), (2, 0), (2, 1)}
    file = sorted(Path("out/series/few").rglob("cubic-seed2-viewer1-transport.csv"))[-1]
    stored_windows = pl.read_csv(file).get_column("window_bytes")
    found = windows.filter(seed=2, viewer=1).get_column("window_bytes")
    assert found.to_list() == stored_windows.to_list()
    bulk = playrate_lab.curves("out", role="bulk")
    assert set(bulk.get_column("viewer")) == {2}
    assert set(playrate_lab.curves("out", kind="events").get_column("kind")) >= {"startup"}
    assert playrate_lab.curves("out", kind="downloads").get_column("delivered_bytes").max() > 0  # type: ignore[operator]
    with pytest.raises(BadInputError, match=r"no segments series of such a flow in out; .* --series"):
        playrate_lab.curves("out", kind="segments")


def test_errors_name_the_input(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, wrong in [
        ("`path.speed`", lambda: playrate_lab.run(scenario, settings={"path.speed": 1})),
        ("no scenario", lambda: playrate_lab.run("no scenario")),
        ("has a comma", lambda: playrate_lab.sweep(scenario, {"rate": ["2Mbit/s,1Mbit/s@2s"]})),
        ("a list of values for 'rate'", lambda: playrate_lab.sweep(scenario, {"rate": "2Mbit/s"})),
        ("`over` has no key", lambda: playrate_lab.sweep(scenario, {})),
        ("has a comma", lambda: playrate_lab.run(scenario, controllers=["reno,cubic"])),
        ("shards=2", lambda: playrate_lab.run(scenario, shards=2)),
        ("at least 1", lambda: playrate_lab.run(scenario, shards=0, engine="ray")),
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
