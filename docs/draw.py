"""Draws figures of the documentation from the numbers beside them, as SVG that is the same in every run.

python docs/draw.py            writes docs/controllers/*.svg, docs/load/*.svg and the other figures
python docs/draw.py --check    names the figures and the numbers of pages that differ; exit code 1 if there are any

Three options first keep the numbers of results that are too large for the repository:

python docs/draw.py --map DIR        the held-out map (docs/matrix.md has the command), in docs/matrix/held-out.csv
python docs/draw.py --shared DIR     a viewer with and without a download (the same page), in docs/matrix/shared.csv
python docs/draw.py --demo FILE      the output of `lab demo --json`, in docs/demo.json
"""

import argparse
import csv
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib as mpl
import tomllib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from playrate_lab import scores
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


# Kinds of generated paths: the properties in the tables of docs/matrix.md. A path has one of the first six.
KINDS = {
    "constant": "constant rate",
    "steps": "rate in steps",
    "outages": "outages",
    "policer": "policer",
    "cellular": "cellular fades",
    "wifi": "Wi-Fi",
    "loss": "single random losses",
    "bursts": "bursts of losses",
    "routes": "RTT changes",
    "jitter": "jitter, reordering",
    "uplink": "slow uplink",
    "batches": "ACKs in batches",
    "downloads": "downloads beside",
}
SHOWN = ("video", "bbr", "copa", "cubic", "reno", "vegas")
# A viewer stalls if its score is at least this: 2.4 s of two minutes.
STALLS = 0.02
MAP, SHARED, DEMO = DOCS / "matrix/held-out.csv", DOCS / "matrix/shared.csv", DOCS / "demo.json"


def kinds(scenario: dict[str, Any]) -> list[str]:
    """The kinds of the path of a generated scenario."""
    path = scenario["path"]
    rate, loss = path["rate"], path.get("loss", "")
    if "policer" in path:
        medium = "policer"
    elif "(" in rate:
        medium = "wifi" if rate.startswith("wifi(") else "cellular"
    elif "," in rate:
        medium = "outages" if ",0bit/s@" in rate else "steps"
    else:
        medium = "constant"
    others = {
        "loss": loss and "(" not in loss,
        "bursts": "(" in loss,
        "routes": "," in path["rtt"],
        "jitter": path.keys() & {"jitter", "reordering"},
        "uplink": "uplink" in path,
        "batches": "ack_batches" in path,
        "downloads": "bulk" in scenario,
    }
    return [medium, *(kind for kind, has in others.items() if has)]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Writes a CSV file; numbers have five digits after the point."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: round(value, 5) if isinstance(value, float) else value for key, value in row.items()})


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open() as file:
        return list(csv.DictReader(file))


def keep_map(results: Path) -> None:
    """Keeps the cells of the held-out map with the kinds of their paths."""
    rows = []
    for (name, _), controllers in sorted(scores.cells(scores.rows(results)).items()):
        of = " ".join(kinds(tomllib.loads((results / f"scenarios/{name}.toml").read_text())))
        for controller, cell in controllers.items():
            values = asdict(cell) | {"fits": int(cell.fits)}
            rates = {key: values[key] and round(values[key]) for key in ("bitrate_bps", "others_bps")}
            rows.append({"path": name, "kinds": of, "controller": controller, **values, **rates})
    write_rows(MAP, rows)


def held_out() -> tuple[scores.Cells, dict[str, list[str]]]:
    """The kept cells of the held-out map, and the kinds of each path."""
    cells: dict[scores.Place, dict[str, scores.Cell]] = defaultdict(dict)
    of = {}
    for row in read_rows(MAP):
        name, controller = row.pop("path"), row.pop("controller")
        of[name] = row.pop("kinds").split()
        values: dict[str, Any] = {key: float(value) if value else None for key, value in row.items()}
        cells[name, ""][controller] = scores.Cell(**values | {"fits": row["fits"] == "1"})
    return cells, of


def stalled(least: float = STALLS) -> dict[str, dict[str, int]]:
    """The number of held-out paths where the title fits and the viewer's score is `least` or more.

    By kind of path and controller; the controller `paths` stands for all of these paths.
    """
    cells, of = held_out()
    found: dict[str, dict[str, int]] = {kind: defaultdict(int) for kind in ("all", *KINDS)}
    for place in scores.compared(cells)[0]:
        for kind in ("all", *of[place[0]]):
            found[kind]["paths"] += 1
            for controller, cell in cells[place].items():
                found[kind][controller] += cell.score >= least
    return found


def claim() -> Drawing:
    """The held-out paths where the viewer stalls, by kind of path and controller."""
    found = stalled()
    labels = {"all": "all paths", **KINDS}
    height, left, wide, high = 46 + 25 * len(labels), 196, 40, 22
    figure = sheet(left + 41 * len(SHOWN), height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, left + 41 * len(SHOWN)), ylim=(height, 0))
    axes.axis("off")
    for number, controller in enumerate(SHOWN):
        weight = "bold" if controller == "video" else "normal"
        axes.text(left + 41 * number + wide / 2, 26, controller, ha="center", fontsize=9.5, weight=weight)
    for line, (kind, label) in enumerate(labels.items()):
        top = 40 + 25 * line + (4 if line else 0)
        count = found[kind]["paths"]
        weight = "bold" if kind == "all" else "normal"
        axes.text(left - 8, top + high / 2, f"{label}, {count}", ha="right", va="center", fontsize=9.5, weight=weight)
        for number, controller in enumerate(SHOWN):
            stalls = found[kind][controller]
            share = stalls / max(count, 1)
            colour = mpl.colors.to_rgba(VERMILION, 0.15 + 0.85 * share) if stalls else GRID
            axes.add_patch(Rectangle((left + 41 * number, top), wide, high, facecolor=colour, linewidth=0))
            where = (left + 41 * number + wide / 2, top + high / 2)
            axes.text(*where, str(stalls) if count else "\N{EN DASH}", ha="center", va="center", fontsize=9.5)
    counts = [f"{controller} {found['all'][controller]}" for controller in SHOWN]
    total = found["all"]["paths"]
    alternative = f"Held-out paths where the viewer stalls, of {total}: {', '.join(counts)}; and by kind of path"
    return DOCS / "claim.svg", figure, alternative


def keep_shared(results: Path) -> None:
    """Keeps what a viewer and the download beside it get, and the queueing delay of a viewer that is alone."""
    kept: dict[tuple[str, str, int], dict[str, Any]] = {}
    for row in scores.rows(results):
        queue = row["case"].split("path.queue=")[1].split("bdp")[0]
        key = (queue, row["controller"], row["trial"])
        of = kept.setdefault(key, dict(zip(("queue_bdp", "controller", "trial"), key, strict=True)))
        alone = row["case"].endswith("bulk.count=0")
        if row["role"] == "bulk":
            of["download_mbps"] = row["compared_bytes"] * 8 / row["compared_s"] / 1e6
        elif alone:
            of |= {"alone_queueing_ms": row["mean_queue_delay_s"] * 1e3, "alone_score": scores.score(row)}
        else:
            of["score"] = scores.score(row)
    columns = ("queue_bdp", "controller", "trial", "download_mbps", "score", "alone_queueing_ms", "alone_score")
    rows = [{column: of[column] for column in columns} for of in kept.values()]
    write_rows(SHARED, sorted(rows, key=lambda row: (float(row["queue_bdp"]), row["controller"], row["trial"])))


def shared_means() -> dict[str, dict[float, dict[str, float]]]:
    """Means over the trials of `keep_shared`, by controller and queue in bandwidth-delay products."""
    sums: dict[str, dict[float, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for row in read_rows(SHARED):
        for key in ("download_mbps", "score", "alone_queueing_ms", "alone_score"):
            sums[row["controller"]][float(row["queue_bdp"])][key].append(float(row[key]))
    return {
        controller: {
            queue: {key: math.fsum(values) / len(values) for key, values in of.items()} for queue, of in queues.items()
        }
        for controller, queues in sums.items()
    }


def shared() -> Drawing:
    """What a download gets beside a viewer, and the queueing delay of a viewer, over the size of the queue."""
    means = shared_means()
    figure = sheet(440, 470)
    titles = {
        "download_mbps": "the download beside the viewer gets, of 20 Mbit/s",
        "alone_queueing_ms": "the viewer alone delays others' packets by, ms",
    }
    for number, (key, title) in enumerate(titles.items()):
        axes = figure.add_axes((44 / 440, (262 - 218 * number) / 470, 378 / 440, 150 / 470))
        for controller, queues in means.items():
            values = [of[key] for of in queues.values()]
            axes.plot(list(queues), values, "-", color=COLOURS[controller], linewidth=2, label=controller)
            bad = [of["score" if number == 0 else "alone_score"] >= STALLS for of in queues.values()]
            stalls = [(queue, value) for queue, value, stalls in zip(queues, values, bad, strict=True) if stalls]
            if stalls:
                axes.plot(*zip(*stalls, strict=True), "X", color=COLOURS[controller], markersize=9, clip_on=False)
        axes.set_xscale("log")
        sizes = sorted(means["video"])
        axes.set(xticks=sizes, xticklabels=[f"{size:g}" for size in sizes], xlim=(sizes[0], sizes[-1]))
        axes.minorticks_off()
        axes.tick_params(labelsize=9.5, pad=6)
        axes.set_title(title, loc="left", fontsize=9.5, pad=9)
        if number == 0:
            axes.axhline(9.6, color=FAINT, linewidth=0.75, dashes=(6, 5))
            axes.set(ylim=(0, 20), yticks=(0, 5, 10, 15, 20))
        else:
            axes.set_yscale("log")
            axes.set(ylim=(0.4, 1000), yticks=(1, 10, 100, 1000), yticklabels=("1", "10", "100", "1000"))
            axes.minorticks_off()
            axes.set_xlabel("queue ÷ bandwidth-delay product; ✖ the viewer stalls", fontsize=9.5)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles[::-1],
        labels[::-1],
        loc="upper left",
        ncols=4,
        frameon=False,
        fontsize=9.5,
        handlelength=1.2,
        columnspacing=1.2,
    )
    said = [f"{controller} {queues[1]['download_mbps']:.1f}" for controller, queues in means.items()]
    waits = [f"{controller} {queues[4]['alone_queueing_ms']:.0f}" for controller, queues in means.items()]
    alternative = (
        f"A download beside a viewer gets, in Mbit/s, with a queue of one bandwidth-delay product: {', '.join(said)}. "
        f"Queueing delay of a viewer alone in ms, with four: {', '.join(waits)}"
    )
    return DOCS / "shared.svg", figure, alternative


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
        seen = f"stalls for {run['frozen_s']:.0f} s" if run["stalls"] else "never stalls"
        verdict = f"{run['controller']}: {seen} (virtual time: {seeds})"
        said.append(verdict)
        axes.text(0, 52 * line + 14, verdict, fontsize=9.5, weight="bold" if run["controller"] == "video" else "normal")
        parts = [(0, run["startup_delay_s"], GRID), (run["startup_delay_s"], run["ended_s"], BLUE)]
        parts += [(begin, until, VERMILION) for begin, until in run["stalls"]]
        for begin, until, colour in parts:
            axes.add_patch(Rectangle((begin, 52 * line + 20), until - begin, 20, facecolor=colour, linewidth=0))
    axes.set(xlim=(0, end), ylim=(52 * len(runs), 0), yticks=[])
    axes.tick_params(labelsize=9.5)
    axes.set_xlabel("seconds; blue: playing, orange: stalled, grey: before the start", fontsize=9.5)
    return DOCS / "demo.svg", figure, f"Playback over time. {'; '.join(said)}"


def percent(share: float) -> str:
    """A share in percent with two digits."""
    digits = 2 if share < 0.00995 else 1 if share < 0.0995 else 0
    return f"{share * 100:.{digits}f} %"


def claims() -> Iterator[tuple[str, str]]:
    """Every page with a sentence or the end of a table's row that it must have, from the kept numbers."""
    for least in (0.01, STALLS, 0.05):
        numbers = stalled(least)["all"]
        yield "docs/matrix.md", f"| {least * 100:g} % | {' | '.join(str(numbers[one]) for one in SHOWN)} |"
    numbers = stalled()["all"]
    said = f"on {numbers['video']} of {numbers['paths']} held-out paths under `video`, on {numbers['bbr']} under BBRv3"
    yield "README.md", f"{said}, {numbers['cubic']} under CUBIC and {numbers['copa']} under Copa"
    cells, _ = held_out()
    for one in scores.regrets(cells):
        lost, queueing, others = percent(one.lost_beyond_own), one.queueing_of_vegas or 0, one.others_of_cubic or 0
        row = f"| {one.mean_rank:.1f} | {percent(one.mean)} | {percent(one.worst[0])} (`{one.worst[1].split('-')[0]}`)"
        row += f" | {one.first_share * 100:.0f} % | {lost} | {queueing:.2f} | {others:.2f} |"
        yield "docs/matrix.md", f"| `{one.controller}` {row}"
        if one.controller in ("video", "video(rate=off)", "bbr", "copa", "cubic", "vegas"):
            yield "README.md", f"`{one.controller}` | {percent(one.mean)} | {others:.2f} | {queueing:.1f} | {lost} |"


def drawings() -> Iterator[Drawing]:
    """Every figure with its file and its text alternative."""
    for run in json_lines(DOCS / "controllers/windows.jsonl"):
        yield controller(run)
    yield from (load(), soak(), estimates(), claim(), shared(), demo())


def main() -> int:
    """Writes the figures, or compares them and the pages with their numbers."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and compare")
    keeps = {"map": keep_map, "shared": keep_shared, "demo": keep_demo}
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
    for page, said in claims():
        if said not in " ".join((DOCS.parent / page).read_text().split()):
            print(f"{page} lacks what {MAP.name} says: {said}")
            differing += 1
    return min(differing, 1)


if __name__ == "__main__":
    sys.exit(main())
