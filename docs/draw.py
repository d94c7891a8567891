"""Draws figures of the documentation from the numbers beside them, as SVG that is the same in every run.

python docs/draw.py            writes docs/controllers/*.svg, docs/load/*.svg and docs/live/estimates.svg
python docs/draw.py --check    names the figures that differ from what would be drawn; exit code 1 if there are any
"""

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from playrate_lab.plots import svg_text

DOCS = Path(__file__).resolve().parent
INK, FAINT, GRID = "#22262B", "#5F666E", "#E7E9EC"
# Okabe and Ito's palette, as in all figures.
BLUE, VERMILION, AMBER = "#0072B2", "#D55E00", "#E69F00"
# CSS pixels per inch.
PIXELS = 96

mpl.rcParams.update(
    {
        "svg.hashsalt": "playrate",
        # Texts stay texts, in the reader's own face.
        "svg.fonttype": "none",
        "font.family": ["DejaVu Sans"],
        "font.size": 7.5,
        "text.color": INK,
        "axes.edgecolor": GRID,
        "axes.labelcolor": FAINT,
        "axes.titlesize": 7.5,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.autolimit_mode": "round_numbers",
        "axes.axisbelow": True,
        "grid.color": GRID,
        "grid.linewidth": 0.75,
        "xtick.color": FAINT,
        "ytick.color": FAINT,
        "xtick.major.size": 0,
        "ytick.major.size": 0,
        "lines.solid_capstyle": "butt",
        "axes.spines.left": False,
        "axes.spines.right": False,
        "axes.spines.top": False,
    }
)

Drawing = tuple[Path, Figure, str]


def sheet(width: float, height: float) -> Figure:
    """An empty figure of this size in CSS pixels."""
    return Figure(figsize=(width / PIXELS, height / PIXELS))


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def window(axes: Axes, stretches: list[dict[str, Any]], end: float) -> None:
    """A line of the window in kB over time in s until `end`: amber in slow start, blue after it."""
    last: list[tuple[float, float]] = []
    for number, stretch in enumerate(stretches):
        points = last + [(ms / 1e3, kb) for ms, kb in stretch["ms_kb"]]
        following = stretches[number + 1]["ms_kb"][0][0] / 1e3 if number + 1 < len(stretches) else end
        last = [(following, points[-1][1])]
        times, windows = zip(*points, *last, strict=True)
        colour = AMBER if stretch["slow_start"] else BLUE
        axes.step(times, windows, where="post", color=colour, linewidth=1.1)


def controller(run: dict[str, Any]) -> Drawing:
    """The congestion window of one controller, on the same axes for all of them."""
    name, title = run["controller"], f"{run['controller']}, {run['demand']}"
    figure = sheet(480, 190)
    axes = figure.add_axes((40 / 480, 34 / 190, 366 / 480, 130 / 190))
    axes.set(xlim=(0, 30), ylim=(0, 750), xticks=range(0, 31, 5), yticks=range(0, 751, 250), xlabel="time, s")
    axes.set_title(title)
    axes.set_title("cwnd, kB", loc="left", x=-0.1, color=FAINT)
    for kb, label in ((250, "BDP"), (500, "BDP + queue")):
        axes.axhline(kb, color=FAINT, linewidth=0.5, dashes=(6, 5))
        axes.text(30.4, kb, label, color=FAINT, va="center")
    axes.vlines([tenths / 10 for tenths in run["losses_ds"]], 0, 35, color=VERMILION, linewidth=0.9)
    window(axes, run["stretches"], 30)
    return DOCS / f"controllers/{name}.svg", figure, f"Congestion window of {title}, over 30 s"


def load() -> Drawing:
    """The curve of `many_viewers` with and without admission control."""
    figure = sheet(760, 270)
    lines = (("without.jsonl", "every viewer admitted", VERMILION), ("with.jsonl", "with admission control", BLUE))
    panels: list[Axes] = [figure.add_axes((left / 760, 44 / 270, 300 / 760, 178 / 270)) for left in (56, 440)]
    fields = ("lateness_p99_ms", "goodput_mbps")
    titles = ("lateness of segments, 99th percentile, seconds", "delivered, Gbit/s")
    for axes, field, title in zip(panels, fields, titles, strict=True):
        for file, label, colour in lines:
            rows = json_lines(DOCS / "load" / file)
            sessions, values = [row["offered"] for row in rows], [row[field] / 1e3 for row in rows]
            axes.plot(sessions, values, "o-", color=colour, linewidth=1.3, markersize=4.5, label=label, clip_on=False)
        axes.set(xlim=(0, 2000), xticks=range(0, 2001, 500), xlabel="sessions offered, 5 Mbit/s each")
        axes.set_title(title, loc="left")
    decades = [10.0**power for power in range(-3, 3)]
    panels[0].set_yscale("log")
    panels[0].set(ylim=(0.001, 100), yticks=decades, yticklabels=[f"{value:g}" for value in decades])
    panels[0].minorticks_off()
    panels[1].set(ylim=(0, 10), yticks=range(0, 11, 2))
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="upper left", bbox_to_anchor=(0.06, 1), ncols=2, frameon=False
    )
    alternative = "Lateness of segments and bytes delivered by sessions offered, with and without admission control"
    return DOCS / "load/curve.svg", figure, alternative


def soak() -> Drawing:
    """The samples of `hostile_clients soak` over time; times of attacks are grey."""
    with (DOCS / "load/soak.csv").open() as file:
        rows = list(csv.DictReader(file))
    minutes = [float(row["seconds"]) / 60 for row in rows]
    attacks = [int(bool(row["attack"])) for row in rows[1:]]
    figure = sheet(900, 560)
    panels = {
        "memory_mb": "server's resident memory, MB",
        "descriptors": "server's descriptors",
        "processor_time": "server's processor time, processors",
        "watching": "sessions in progress",
    }
    for number, (column, title) in enumerate(panels.items()):
        axes = figure.add_axes((50 / 900, (430 - 128 * number) / 560, 830 / 900, 92 / 560))
        axes.stairs(attacks, minutes, fill=True, color=GRID, linewidth=0, transform=axes.get_xaxis_transform())
        axes.plot(minutes, [float(row[column]) for row in rows], color=BLUE, linewidth=1.1)
        axes.set(xlim=(0, minutes[-1]), xticks=range(0, int(minutes[-1]) + 1, 10))
        axes.locator_params(axis="y", nbins=3)
        axes.set_ylim(bottom=0)
        axes.set_title(title, loc="left")
    axes.set_xlabel("minutes; grey: an attack is in progress, another one each time")
    alternative = "Memory, descriptors, processor time and sessions of a server over time, attacked in turns"
    return DOCS / "load/soak.svg", figure, alternative


def estimates() -> Drawing:
    """The runs of `estimate_series`: estimates every 100 ms, and the rate of the link without UDP and IP headers."""
    rows = json_lines(DOCS / "live/estimates.jsonl")
    links = {"steps": "a link with steps, Mbit/s", "fades": "a link that fades, Mbit/s"}
    colours = {"cubic": VERMILION, "bbr": AMBER, "video": BLUE}
    figure = sheet(760, 420)
    for number, (link, title) in enumerate(links.items()):
        axes = figure.add_axes((40 / 760, (230 - 186 * number) / 420, 700 / 760, 140 / 420))
        for row in (row for row in rows if row["link"] == link):
            times, rates = zip(*row["ms_kbps"], (30_000, row["ms_kbps"][-1][1]), strict=True)
            if row["controller"] == "cubic":
                carried = [kbps * 1452 / 1480e3 for kbps in rates]
                seconds = [ms / 1e3 for ms in times]
                axes.step(seconds, carried, where="post", color=INK, linewidth=0.9, label="link")
            steps = enumerate(row["estimates_kbps"], 1)
            points = [(step / 10, kbps / 1e3) for step, kbps in steps if kbps is not None]
            name = row["controller"]
            axes.plot(*zip(*points, strict=True), color=colours[name], linewidth=1.1, label=f"estimate under {name}")
        axes.set(xlim=(0, 30), xticks=range(0, 31, 5))
        axes.locator_params(axis="y", nbins=5)
        axes.set_ylim(bottom=0)
        axes.set_title(title, loc="left")
    axes.set_xlabel("time, s")
    figure.legend(*axes.get_legend_handles_labels(), loc="upper left", ncols=4, frameon=False)
    alternative = "Estimates under cubic, bbr and video, and the rate of the link, with steps and with a wave"
    return DOCS / "live/estimates.svg", figure, alternative


def drawings() -> Iterator[Drawing]:
    """Every figure with its file and its text alternative."""
    for run in json_lines(DOCS / "controllers/windows.jsonl"):
        yield controller(run)
    yield load()
    yield soak()
    yield estimates()


def main() -> int:
    """Writes the figures, or compares them with their files."""
    differing = 0
    for path, figure, alternative in drawings():
        text = svg_text(figure, alternative)
        if "--check" not in sys.argv[1:]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path} differs: run `python docs/draw.py` and look at it")
            differing += 1
    return min(differing, 1)


if __name__ == "__main__":
    sys.exit(main())
