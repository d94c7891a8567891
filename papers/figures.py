"""Figures of the page: each row in the nominal and the fitted world, and the landscape of each search."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from papers.judge import UNITS, Trials, unit_of
from playrate_lab.compare import interval
from playrate_lab.plots import PALETTE, save

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from papers.judge import Results, Row
    from papers.unknowns import Axis, TestBed

    Numbers: TypeAlias = NDArray[np.float64]

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "papers",
    "svg.fonttype": "none",
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E7E9EC",
    "legend.frameon": False,
}
_WORLDS = {"nominal": ("o", PALETTE[0]), "fitted": ("s", PALETTE[1])}
_END = "#8C939A"
#: Maximum number of quantities in a figure.
MOST = 3
#: Metrics, with their windows, and roles, for rows whose quantities cover only a part of the run.
DRAWN = {
    "P12-3a": (("throughput_bps@50s..150s", "viewer"),),
    "P12-3b": (("throughput_bps@50s..150s", "bulk"),),
    "P12-3c": (("loss_ratio@50s..150s", "all"),),
    "P12-5": (("throughput_bps@5s..30s", "viewer"), ("throughput_bps@35s..60s", "viewer")),
    "P14-4": (("window_first_rtts_bytes[4]", "viewer"), ("window_growth", "viewer"), ("window_30s_step_sd", "viewer")),
}
#: The counts that the papers draw, by the metric that relates them to the length.
_SAME = {"discard_share": "frames_discarded", "underflows_per_minute": "underflow_events"}


def drawn(row: Row) -> tuple[tuple[str, str], ...]:
    """Returns the metrics of a row's figure, each with the role of the flows."""
    if row.id in DRAWN:
        return DRAWN[row.id]
    kept = [name for name in row.quantities if _SAME.get(name) not in row.quantities]
    return tuple((name, "viewer") for name in kept[:MOST])


def conditions_of(row: Row, results: Results) -> list[str]:
    """Returns the scenarios that a row reads, each with its case if it has one."""
    mine = results.select("scenario", "case").unique(maintain_order=True).rows()
    return [f"{scenario}/{case}" if case else scenario for scenario, case in mine if scenario in row.scenarios]


def of_row(row: Row, worlds: Mapping[str, Results], axes: Sequence[Axis]) -> Figure:
    """Draws means with their 95 % intervals by controller and case, and where the paper's axes end."""
    conditions = conditions_of(row, next(iter(worlds.values())))
    lines = [(at, controller) for at in conditions for controller in row.controllers]
    metrics = drawn(row)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(2 + 2.7 * len(metrics), 1.1 + 0.3 * len(lines)))
        panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
        for panel, (metric, role) in zip(panels, metrics, strict=True):
            label, size = _unit(metric)
            for (world, results), shift in zip(worlds.items(), (-0.14, 0.14), strict=False):
                means, ends = _intervals(Trials(results, conditions, row.controllers, shuffles=0), metric, role, size)
                marker, colour = _WORLDS[world]
                places = np.arange(len(lines)) + shift
                panel.errorbar(means, places, xerr=ends.T, fmt=marker, ms=4, lw=1, color=colour, label=world)
            mine = {
                axis.most: axis.place for axis in axes if axis.metric == metric and axis.scenario == row.scenarios[0]
            }
            for most, place in mine.items():
                panel.axvline(most / size, ls="--", lw=1, color=_END, label=f"axis of {place} ends")
            panel.set_xlabel(label)
            panel.set_xlim(left=0)
        several = len(conditions) > 1
        names = [f"{at.rpartition('/')[2]}  {controller}" if several else controller for at, controller in lines]
        panels[0].set_yticks(range(len(lines)), names)
        panels[0].invert_yaxis()
        handles = {
            text: handle for panel in panels for handle, text in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _intervals(trials: Trials, metric: str, role: str, size: float) -> tuple[Numbers, Numbers]:
    """Returns means by condition and controller, and the distances to the ends of their intervals."""
    every = [values.x[0] / size for at in trials.conditions for values in trials.of(metric, at, role).values()]
    found = [interval(values[np.isfinite(values)]) for values in every]
    means = [math.nan if one is None else one.mean for one in found]
    ends = [(0, 0) if one is None or one.count == 1 else (one.mean - one.low, one.high - one.mean) for one in found]
    return np.array(means), np.array(ends)


def _unit(metric: str) -> tuple[str, float]:
    """Returns the label of a metric's axis and the size of its unit."""
    name, _, window = metric.partition("@")
    unit, size = next(((label, size) for unit, label, size in UNITS.values() if unit == unit_of(name)), ("", 1.0))
    words = name.removesuffix("_bps").removesuffix("_bytes").removesuffix("_s").replace("_", " ")
    label = words.replace("lost packets", "retransmissions") + (f" ({unit})" if unit and unit not in words else "")
    return label + (f", {window}" if window else ""), size


def of_search(bed: TestBed, outcome: Mapping[str, Any]) -> Figure:
    """Draws the scores of all worlds in their order, and the random worlds' mean score by choice of each unknown."""
    scores, landscape = outcome["scores"], outcome["landscape"]
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.5, 2.6 + 0.24 * len(landscape)))
        above, below = figure.subplots(2, 1, height_ratios=(2, 0.24 * len(landscape)))
        count = len(scores["random"])
        above.scatter(range(count), scores["random"], s=8, color=_END, label="random sample")
        search = range(count, count + len(scores["search"]))
        above.scatter(search, scores["search"], s=8, color=PALETTE[2], label="asked for by the search")
        for world, (_, colour) in _WORLDS.items():
            above.axhline(scores[world], lw=1, color=colour, label=f"{world} world")
        above.set(xlabel="world", ylabel="score")
        above.legend(fontsize=8, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
        shades = mpl.colormaps["viridis"]
        for place, values in enumerate(landscape.values()):
            for number, one in enumerate(values):
                below.plot(one["mean"], place, "o", ms=5, color=shades(number / max(1, len(values) - 1)))
        below.set_yticks(range(len(landscape)), landscape.keys())
        below.set_xlabel("mean score of the random worlds by choice; the darkest is the first in the file")
        below.invert_yaxis()
    return figure


def draw(
    rows: Sequence[Row],
    values: Mapping[str, Mapping[str, Results]],
    beds: Mapping[str, TestBed],
    outcomes: Mapping[str, Mapping[str, Any]],
    directory: Path,
) -> None:
    """Writes all figures, as `P13-4.svg` and `search-kyutech.svg`."""
    directory.mkdir(parents=True, exist_ok=True)
    for row in rows:
        if values.get(row.test_bed):
            save(of_row(row, values[row.test_bed], beds[row.test_bed].axes), directory / f"{name_of(row.id)}.svg")
    for name, outcome in outcomes.items():
        save(of_search(beds[name], outcome), directory / f"search-{name}.svg")


def name_of(row: str) -> str:
    """Returns a row's name in files and links: `p14-8-10`."""
    return row.lower().replace("..", "-")
