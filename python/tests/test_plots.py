"""Figures show the values of the rows, and have the same bytes every time."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.figure import Figure
from test_fairness import ROWS as PAIRS
from test_scores import download, row

import playrate_lab
from playrate_lab import BadInputError, plots


def texts(draw: Callable[[], Figure], file: Path) -> list[str]:
    """Return the texts of a figure's SVG, which must be the same bytes each time it is drawn."""
    plots.save(draw(), file)
    first = file.read_bytes()
    plots.save(draw(), file)
    assert file.read_bytes() == first
    assert b"<dc:date>" not in first
    tree = ET.fromstring(first)
    return [element.text or "" for element in tree.iter("{http://www.w3.org/2000/svg}text")]


def write_series(directory: Path, controller: str, factor: int) -> None:
    """Add a run of two seconds to a directory: a window that grows, and a throughput of `factor` Mbit/s."""
    run = {"scenario": "path", "case": "lte", "scenario_hash": "0", "controller": controller, "seed": 1, "viewer": 0}
    with (directory / "runs.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**run, "role": "viewer"}) + "\n")
    series = directory / "series" / "path" / "lte"
    series.mkdir(parents=True, exist_ok=True)
    times = [number / 10 for number in range(21)]
    transport = [f"{at},{factor * 1000 * (1 + at)},,{0.05},{0.05},\n" for at in times]
    playout = [f"{at},1,{round(factor * 125_000 * at)}\n" for at in times]
    head = "at_s,window_bytes,ssthresh_bytes,srtt_s,rtt_s,capacity_bps\n"
    name = controller.replace("(", "_").replace(")", "_").replace("=", "_")
    (series / f"{name}-seed1-viewer0-transport.csv").write_text("".join([head, *transport]), encoding="utf-8")
    text = "".join(["at_s,held_s,received_bytes\n", *playout])
    (series / f"{name}-seed1-viewer0-playout.csv").write_text(text, encoding="utf-8")


def drawn(figure: Figure) -> list[list[tuple[float, float]]]:
    """Return the points of the first line of each panel."""
    lines = [axes.get_lines()[0] for axes in figure.axes]
    return [list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in lines]  # type: ignore[arg-type]


def metrics(**controllers: list[float]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = [
        {"scenario": "path", "case": case, "controller": name, "seed": seed, "role": "viewer", "rtt_mean_s": value}
        for case in ("a", "b")
        for name, values in controllers.items()
        for seed, value in enumerate(values)
    ]
    return pl.DataFrame(rows)


def test_bars_have_the_means_and_intervals_of_each_controller(tmp_path: Path) -> None:
    rows = metrics(reno=[1.0, 3.0], cubic=[4.0, 4.0])
    (axes,) = plots.bars(rows, "rtt_mean_s").axes
    heights = [[patch.get_height() for patch in bars.patches] for bars in axes.containers if hasattr(bars, "patches")]  # type: ignore[attr-defined]
    assert heights == [[2, 2], [4, 4]]
    found = texts(lambda: plots.bars(rows, "rtt_mean_s"), tmp_path / "bars.svg")
    assert {"reno", "cubic", "path a", "path b", "rtt mean [s]"} <= set(found)
    # One trial has no interval.
    assert texts(lambda: plots.bars(metrics(reno=[1.0]), "rtt_mean_s"), tmp_path / "one.svg")


def test_bars_of_no_trial_are_refused() -> None:
    words = "no trial to show has rtt_mean_s of a {}; the rows have the controllers reno, cubic"
    with pytest.raises(ValueError, match=words.format("bulk")):
        plots.bars(metrics(reno=[1.0], cubic=[2.0]), "rtt_mean_s", role="bulk")
    with pytest.raises(ValueError, match=words.format("viewer")):
        plots.bars(metrics(reno=[1.0], cubic=[2.0]), "rtt_mean_s", controllers=["vegas"])


def test_axes_have_the_units_of_metrics() -> None:
    assert plots._axis("throughput_bps") == ("throughput [Mbit/s]", 1e-6)
    assert plots._axis("impaired_share") == ("impaired share [%]", 100)
    assert plots._axis("frames_discarded") == ("frames discarded", 1)


def test_curves_have_a_panel_for_each_controller_and_a_row_for_each_directory(tmp_path: Path) -> None:
    for name, factor in (("old", 1), ("new", 2)):
        (tmp_path / name).mkdir()
        for controller in ("reno", "video(rate=off)"):
            write_series(tmp_path / name, controller, factor)
    directories = [tmp_path / "old", tmp_path / "new"]
    figure = plots.curves(*directories, show="window", until=1.0)
    assert len(figure.axes) == 4
    assert drawn(figure)[0][:2] == [(0.0, 1.0), (0.1, 1.1)]
    assert drawn(figure)[2][-1] == (1.0, 4.0)
    found = texts(lambda: plots.curves(*directories, show="window"), tmp_path / "window.svg")
    assert {"reno", "video(rate=off)", "congestion window [kB]", "seconds since the connection began"} <= set(found)
    assert any(text.endswith("new") for text in found)

    figure = plots.curves(tmp_path / "new", show="throughput", controllers="video(rate=off)", cases=["lte"])
    (points,) = drawn(figure)
    assert [value for _, value in points] == pytest.approx([2.0] * len(points), rel=1e-4)
    with pytest.raises(ValueError, match="unknown quantity 'speed'; expected one of: window, rtt"):
        plots.curves(tmp_path / "new", show="speed")
    with pytest.raises(ValueError, match="no capacity between 0"):
        plots.curves(tmp_path / "new", show="capacity")
    with pytest.raises(BadInputError, match="no queue series"):
        plots.curves(tmp_path / "new", show="queue")


def test_a_spike_does_not_flatten_the_rest() -> None:
    values = [100.0] * 200 + [900.0]
    series = pl.DataFrame({"at_s": [float(at) for at in range(201)], "rtt_s": values})
    series = series.with_columns(controller=pl.lit("reno"), viewer=pl.lit(0))
    quantity = plots.QUANTITIES["rtt"]._replace(factor=1.0)
    assert plots._limits(series, quantity, "rtt") == (90, 125)
    assert plots._limits(series.head(200), quantity, "window") == (0, 105)


def test_the_map_of_regret_has_a_column_for_each_kind_of_path(tmp_path: Path) -> None:
    rows = [row("cubic", 0.3), row("vegas", 0.1)]
    rows += [{**one, "scenario": "shared"} for one in (row("cubic", 0), row("vegas", 0), download("cubic", 4e6))]
    found = texts(lambda: plots.regret_map([{**one, "viewer": 0} for one in rows]), tmp_path / "regret.svg")
    assert {"all (2)", "alone (1)", "competitors (1)", "RTT < 120 ms (2)", "loss ≥ 1 % (2)"} <= set(found)
    # cubic's regret is 20 % alone, and half of that over both paths.
    assert {"20", "10", "0"} <= set(found)
    with pytest.raises(ValueError, match="no path has results of every controller"):
        plots.regret_map([row("cubic", 0, viewer=0), row("vegas", 0, viewer=0, scenario="other")])


def test_the_maps_of_fairness_have_a_cell_for_each_pair(tmp_path: Path) -> None:
    found = texts(lambda: plots.fairness_map(PAIRS), tmp_path / "share.svg")
    assert {"cubic", "vegas", "bbr", "50", "10", "90", "40", "0"} <= set(found)
    found = texts(lambda: plots.fairness_map(PAIRS, left=True), tmp_path / "left.svg")
    assert "15.0*" in found


def test_the_command_draws_each_kind(tmp_path: Path, scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    playrate_lab.run(scenario, controllers=["cubic", "video(pace=3,queue=5ms)"], series="first", out="out")
    pairs = tmp_path / "pairs"
    pairs.mkdir()
    (pairs / "runs.jsonl").write_text("\n".join(map(json.dumps, PAIRS)), encoding="utf-8")
    for show, directory in (("impaired_share", "out"), ("rtt", "out"), ("regret", "out"), ("fairness", str(pairs))):
        chosen = ["--controllers", "video(pace=3,queue=5ms),cubic"] if directory == "out" else []
        plots.main([directory, "--show", show, "--out", f"{show}.svg", *chosen])
        assert "</svg>" in Path(f"{show}.svg").read_text(encoding="utf-8")
    text = Path("rtt.svg").read_text(encoding="utf-8")
    assert text.index("video(pace=3,queue=5ms)") < text.index("cubic")
    for arguments, words in (
        (["--show", "speed"], "no column 'speed'"),
        (["--show", "impaired_share", "--controllers", "vegas"], "the rows have the controllers"),
    ):
        with pytest.raises(SystemExit, match="2"):
            plots.main(["out", *arguments, "--out", "none.svg"])
        assert words in capsys.readouterr().err
    with pytest.raises(SystemExit):
        plots.main(["--help"])
    assert "--until" in capsys.readouterr().out
