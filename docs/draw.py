"""Draws figures of the documentation from the numbers beside them, as SVG that is the same in every run.

python docs/draw.py            writes docs/controllers/*.svg, docs/load/*.svg and the other figures
python docs/draw.py --check    names the figures that differ from what would be drawn; exit code 1 if there are any
python docs/draw.py --demo FILE    first keeps the output of `lab demo --json` in docs/demo.json
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from playrate_lab.plots import svg_text

DOCS = Path(__file__).resolve().parent
INK, FAINT, GRID = "#22262B", "#5F666E", "#E7E9EC"
# Okabe and Ito's palette, as in all figures.
BLUE, VERMILION, AMBER, GREEN = "#0072B2", "#D55E00", "#E69F00", "#009E73"
COLOURS = {"cubic": VERMILION, "bbr": AMBER, "copa": GREEN, "video": BLUE}
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
            axes.plot(*zip(*points, strict=True), color=COLOURS[name], linewidth=1.1, label=f"estimate under {name}")
        axes.set(xlim=(0, 30), xticks=range(0, 31, 5))
        axes.locator_params(axis="y", nbins=5)
        axes.set_ylim(bottom=0)
        axes.set_title(title, loc="left")
    axes.set_xlabel("time, s")
    figure.legend(*axes.get_legend_handles_labels(), loc="upper left", ncols=4, frameon=False)
    alternative = "Estimates under cubic, bbr and video, and the rate of the link, with steps and with a wave"
    return DOCS / "live/estimates.svg", figure, alternative


DEMO = DOCS / "demo.json"


def keep_demo(file: Path) -> None:
    """Keeps what the demo's viewers saw, and what they saw with other seeds."""
    kept = []
    for run in json.loads(file.read_text())["runs"]:
        row = run["row"]
        seeds = next(one for one in run["virtual"] if one["name"] == "frozen_s")
        kept.append(
            {
                **{
                    key: row[key]
                    for key in ("controller", "startup_delay_s", "ended_s", "frozen_s", "underflow_events")
                },
                "seeds_s": [seeds["virtual_min"], seeds["virtual_max"]],
                "stalls": [[round(second, 2) for second in stall] for stall in run["stalls"]],
            }
        )
    DEMO.write_text("\n".join(["[", ",\n".join(json.dumps(one) for one in kept), "]", ""]))


def demo() -> Drawing:
    """The playback of each viewer of the demo over time."""
    runs = json.loads(DEMO.read_text())
    end = max(run["ended_s"] for run in runs)
    height = 54 + 52 * len(runs)
    figure = sheet(440, height)
    axes = figure.add_axes((8 / 440, 44 / height, 424 / 440, 1 - 50 / height))
    said = []
    for line, run in enumerate(runs):
        low, high = (f"{second:.0f}" for second in run["seeds_s"])
        seeds = f"{low} s" if low == high else f"{low} to {high} s"
        seen = f"stands still for {run['frozen_s']:.0f} s" if run["stalls"] else "never stands still"
        verdict = f"{run['controller']}: {seen} (ten seeds: {seeds})"
        said.append(verdict)
        axes.text(0, 52 * line + 14, verdict, fontsize=9.5, weight="bold" if run["controller"] == "video" else "normal")
        parts = [(0, run["startup_delay_s"], GRID), (run["startup_delay_s"], run["ended_s"], BLUE)]
        parts += [(begin, until, VERMILION) for begin, until in run["stalls"]]
        for begin, until, colour in parts:
            axes.add_patch(Rectangle((begin, 52 * line + 20), until - begin, 20, facecolor=colour, linewidth=0))
    axes.set(xlim=(0, end), ylim=(52 * len(runs), 0), yticks=[])
    axes.tick_params(labelsize=9.5)
    axes.set_xlabel("seconds; blue: playing, red: standing still, grey: before the start", fontsize=9.5)
    return DOCS / "demo.svg", figure, f"Playback over time. {'; '.join(said)}"


def drawings() -> Iterator[Drawing]:
    """Every figure with its file and its text alternative."""
    for run in json_lines(DOCS / "controllers/windows.jsonl"):
        yield controller(run)
    yield from (load(), soak(), estimates(), demo())


def main() -> int:
    """Writes the figures, or compares them with their files."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and compare")
    keeps = {"demo": keep_demo}
    for name, keep in keeps.items():
        parser.add_argument(f"--{name}", type=Path, metavar="RESULTS", help=keep.__doc__)
    options = vars(parser.parse_args())
    for name, keep in keeps.items():
        if options[name] is not None:
            keep(options[name])
    differing = 0
    for path, figure, alternative in drawings():
        text = svg_text(figure, alternative)
        if not options["check"]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path} differs: run `python docs/draw.py` and look at it")
            differing += 1
    return min(differing, 1)


if __name__ == "__main__":
    sys.exit(main())
