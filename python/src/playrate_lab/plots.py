"""Figures of results: bars with intervals, curves over time, maps of regret and of fairness.

Each function returns a matplotlib figure, and `save` writes it. With one version of matplotlib, the same rows always
give the same bytes. From a shell:

    python -m playrate_lab.plots DIR --show impaired_share --out bars.svg
    python -m playrate_lab.plots DIR --show window --controllers cubic,video --until 60 --out window.svg
    python -m playrate_lab.plots DIR --show regret --out regret.svg
    python -m playrate_lab.plots DIR --show fairness --out fairness.svg
"""

from __future__ import annotations

import argparse
import io
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.figure import Figure

from playrate_lab import fairness, scores
from playrate_lab._command import exit_on_error, split
from playrate_lab._frames import Kind, read
from playrate_lab._frames import curves as read_curves
from playrate_lab.compare import compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from playrate_lab._command import StrPath

#: Colours that remain distinct with a colour vision deficiency (Okabe and Ito 2008, then Paul Tol's muted scheme).
PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222"),
    *("#332288", "#882255", "#117733", "#999933", "#44AA99", "#AA4499", "#CC6677"),
)
#: The canonical spec of the alias `ccp-lb`, and the alias.
CCP_LB = ("ccp+shape=playout-buffer", "ccp-lb")
#: A white ground, so that figures are readable on light and on dark pages.
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "playrate-lab",
    "svg.fonttype": "none",
    # Half a point is invisible, and makes files of dense curves several times smaller.
    "path.simplify_threshold": 0.5,
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#A9AFB5",
    "axes.axisbelow": True,
    "grid.color": "#E7E9EC",
    "legend.frameon": False,
}
#: Units by the suffix of a metric's name: unit of the axis, and factor to it.
_UNITS = {
    "_bps": ("Mbit/s", 1e-6),
    "_bytes": ("kB", 1e-3),
    "_s": ("s", 1.0),
    "_share": ("%", 100.0),
    "_ratio": ("%", 100.0),
    "score": ("%", 100.0),
}
#: Seconds over which throughput is averaged.
_RATE_WINDOW_S = 0.5


class Quantity(NamedTuple):
    """A quantity over time: its series and column, and its axis."""

    kind: Kind
    column: str
    label: str
    factor: float


#: Quantities that `curves` can show.
QUANTITIES = {
    "window": Quantity("transport", "window_bytes", "congestion window [kB]", 1e-3),
    "rtt": Quantity("transport", "rtt_s", "RTT [ms]", 1e3),
    "capacity": Quantity("transport", "capacity_bps", "capacity estimate [Mbit/s]", 1e-6),
    "buffer": Quantity("playout", "held_s", "video in the playout buffer [s]", 1.0),
    "throughput": Quantity("playout", "received_bytes", "throughput [Mbit/s]", 8e-6),
    "downloads": Quantity("downloads", "delivered_bytes", "throughput of all downloads [Mbit/s]", 8e-6),
    "queue": Quantity("queue", "max_queue_bytes", "bottleneck queue [kB]", 1e-3),
}


def bars(
    rows: pl.DataFrame,
    metric: str,
    *,
    by: Sequence[str] = ("scenario", "case"),
    role: str = "viewer",
    controllers: Sequence[str] = (),
    cases: Sequence[str] = (),
) -> Figure:
    """Draws the mean of a metric with its 95 % interval: a group of bars for each case, a bar for each controller.

    Args:
        rows: Rows of `read`, `run` or `sweep`.
        metric: Column to show, such as `"impaired_share"`.
        by: Columns that make a group of bars. Add the keys of a sweep.
        role: `"viewer"`, or `"bulk"` for downloads.
        controllers: Controllers to show, as named in the column `controller`; all by default.
        cases: Cases to show; all by default.

    Raises:
        ValueError: if there is no such column, or no trial has the metric.
    """
    shown = rows
    for column, values in (("controller", controllers), ("case", cases)):
        shown = shown.filter(pl.col(column).is_in(values)) if values else shown
    table = compare(shown, metric, None, by=by, role=role)
    if table.is_empty():
        known = ", ".join(rows.get_column("controller").unique(maintain_order=True))
        raise ValueError(
            f"no trial to show has {metric} of a {role}; the rows have the controllers {known or '(none)'}"
        )
    label, factor = _axis(metric)
    names = [
        " ".join(str(value) for value in group if value != "")
        for group in table.select(by).unique(maintain_order=True).rows()
    ]
    places = {group: place for place, group in enumerate(table.select(by).unique(maintain_order=True).rows())}
    names_shown = table.get_column("controller").unique(maintain_order=True).to_list()
    width = 0.8 / len(names_shown)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(max(6.0, 1.5 + 0.3 * table.height), 3.6))
        axes = figure.subplots()
        for number, controller in enumerate(names_shown):
            of = table.filter(controller=controller)
            means = (factor * of["mean"]).to_list()
            at = [places[group] + (number - (len(names_shown) - 1) / 2) * width for group in of.select(by).rows()]
            ends = [factor * (of[end] - of["mean"]).abs().fill_null(float("nan")) for end in ("low", "high")]
            style = {"color": _colour(controller, names_shown), "label": controller}
            axes.bar(at, means, width, yerr=[end.to_list() for end in ends], capsize=2, error_kw={"lw": 1}, **style)
        axes.set_xticks(range(len(names)), labels=names, rotation=30 if len(names) > 4 else 0)
        axes.set_ylabel(label)
        if (table["mean"].min() or 0) >= 0:  # type: ignore[operator]
            axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        figure.legend(loc="outside upper left", ncols=4)
    return figure


def curves(
    *directories: StrPath,
    show: str,
    controllers: str | Sequence[str] = (),
    cases: str | Sequence[str] = (),
    begin: float = 0.0,
    until: float | None = None,
) -> Figure:
    """Draws a quantity over time: a column of panels for each controller, a row for each case and directory.

    Each panel has a line for each viewer of the first trial that has series.

    Args:
        directories: Directories that `lab run --series` wrote, such as one per version of a controller.
        show: `window`, `rtt`, `capacity`, `buffer`, `throughput`, `downloads` or `queue`.
        controllers: Controllers to show in this order, as named in the column `controller`; all by default.
        cases: Cases to show; all by default.
        begin: Start of the time axis in seconds since the viewer's request, or for `window`, `rtt` and `capacity` since
            its connection began.
        until: End of the time axis; by default that of the longest series.

    Raises:
        BadInputError: if there is no such series.
        ValueError: if there is no such quantity.
    """
    if show not in QUANTITIES:
        raise ValueError(f"unknown quantity {show!r}; expected one of: {', '.join(QUANTITIES)}")
    quantity = QUANTITIES[show]
    series = read_curves(*directories, kind=quantity.kind, controllers=controllers, cases=cases)
    series = series.drop_nulls(quantity.column).filter(pl.col("at_s").is_between(begin, until or float("inf")))
    if series.is_empty():
        raise ValueError(f"the series have no {show} between {begin} s and {until or 'their end'}")
    place = ["directory", "scenario", "case"]
    series = series.filter(pl.col("seed") == pl.col("seed").min().over(*place, "controller"))
    places = series.select(place).unique(maintain_order=True)
    every = series.get_column("controller").unique(maintain_order=True).to_list()
    shown = [
        name for name in ([controllers] if isinstance(controllers, str) else controllers) if name in every
    ] or every
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(min(3.2 * len(shown), 14) + 0.8, 1.9 * places.height + 0.6))
        grid = figure.subplots(places.height, len(shown), sharex=True, sharey="row", squeeze=False)
        for row, (at, axes_of_row) in enumerate(zip(places.rows(named=True), grid, strict=True)):
            for axes, controller in zip(axes_of_row, shown, strict=True):
                of = series.filter(controller=controller, **at)
                _lines(axes, of, quantity, _colour(controller, shown))
                axes.grid(axis="y")
                if row == 0:
                    axes.set_title(controller)
            words = [word for name, word in at.items() if word and places[name].n_unique() > 1]
            axes_of_row[0].set_ylabel("\n".join([*words, quantity.label]))
            axes_of_row[0].set_ylim(*_limits(series.filter(**at), quantity, show))
        grid[0][0].set_xlim(begin, until)
        start = "the connection began" if quantity.kind == "transport" else "the viewer's request"
        figure.supxlabel(f"seconds since {start}", fontsize=9)
    return figure


def _lines(axes: Axes, series: pl.DataFrame, quantity: Quantity, colour: str) -> None:
    for (viewer,), of in series.group_by("viewer", maintain_order=True):
        line: dict[str, Any] = {"color": colour, "lw": 1.1, "alpha": 1.0 if viewer == 0 else 0.6}
        points = _points(of, quantity)
        steps = "steps-post" if quantity.column == "window_bytes" else "default"
        axes.plot(points["at_s"], points["value"], drawstyle=steps, **line)
        if quantity.column == "window_bytes" and of["ssthresh_bytes"].count():
            threshold = quantity.factor * of["ssthresh_bytes"]
            axes.plot(of["at_s"], threshold, drawstyle="steps-post", color="#5F666E", lw=0.8, ls=":")


def _points(series: pl.DataFrame, quantity: Quantity) -> pl.DataFrame:
    """Returns the points of one flow in the unit of the axis; byte counts become rates."""
    points = series.select("at_s", value=quantity.factor * pl.col(quantity.column))
    if quantity.column not in ("received_bytes", "delivered_bytes"):
        return points
    # The last count of each window; windows without a count lengthen the next one.
    counts = points.group_by((pl.col("at_s") / _RATE_WINDOW_S).floor().alias("window"), maintain_order=True).last()
    span = pl.col("at_s").diff()
    return counts.select(at_s=pl.col("at_s") - span / 2, value=pl.col("value").diff() / span).drop_nulls()


def _limits(series: pl.DataFrame, quantity: Quantity, show: str) -> tuple[float, float | None]:
    """Returns the ends of the value axis; a short spike, such as one overshoot, does not flatten the rest."""
    flows = [_points(of, quantity)["value"] for _, of in series.group_by("controller", "viewer", maintain_order=True)]
    largest = max((float(of.max() or 0.0) for of in flows), default=0.0)  # type: ignore[arg-type]
    usual = max((of.quantile(0.99) or 0.0 for of in flows), default=0.0)
    lowest = min((float(of.min() or 0.0) for of in flows), default=0.0)  # type: ignore[arg-type]
    # Axes of RTTs begin just below the smallest, to show the queueing.
    low = 0.9 * lowest if show == "rtt" else 0.0
    return low, 1.25 * usual if largest > 2 * usual > 0 else 1.05 * largest or None


def regret_map(rows: scores.Rows) -> Figure:
    """Draws each controller's mean regret by kind of path, least first, in percent.

    Args:
        rows: Rows of `scores.rows` or `playrate_lab.read`.

    Raises:
        ValueError: if no path has results of every controller.
    """
    rows = rows if isinstance(rows, pl.DataFrame) else list(rows)
    cells = scores.cells(rows)
    places, _ = scores.compared(cells)
    controllers = [one.controller for one in scores.regrets(cells)]
    if not controllers:
        raise ValueError("no path has results of every controller")
    columns = {
        "all": places,
        **{kind: [place for place in of if place in places] for kind, of in scores.kinds(rows).items()},
    }
    columns = {f"{kind} ({len(of)})": of for kind, of in columns.items() if of}
    values = [
        [sum(scores.excess(cells[place], controller) for place in of) / len(of) for of in columns.values()]
        for controller in controllers
    ]
    texts = [[f"{100 * value:.2g}" if value >= 5e-4 else "0" for value in line] for line in values]
    title = "Mean regret by kind of path [%]"
    return _heat(title, controllers, list(columns), values, texts)


def fairness_map(rows: scores.Rows, *, left: bool = False) -> Figure:
    """Draws the viewer's share of the link by its controller (rows) and the download's (columns).

    Args:
        rows: Rows of the scenarios `fairness-needy` and `fairness-calm`, of `scores.rows` or `playrate_lab.read`.
        left: Instead, draw the throughput of the download next to a viewer that needs little, in Mbit/s; a star marks
            viewers that are impaired for more than 1 % of the title.

    Raises:
        ValueError: if there are no such rows.
    """
    pairs = fairness.pairs(rows).filter(demand="calm" if left else "needy")
    viewers = pairs.get_column("controller").unique(maintain_order=True).to_list()
    downloads = pairs.get_column("download").unique(maintain_order=True).to_list()
    values: list[list[float | None]] = [[None] * len(downloads) for _ in viewers]
    texts = [[""] * len(downloads) for _ in viewers]
    for pair in pairs.iter_rows(named=True):
        at, on = viewers.index(pair["controller"]), downloads.index(pair["download"])
        if left:
            possible = 1 - pair["title_bps"] / pair["link_bps"]
            values[at][on] = max(1 - pair["download_share"] / possible, 0.0)
            texts[at][on] = f"{pair['download_bps'] / 1e6:.1f}" + ("*" if pair["score"] > 0.01 else "")
        else:
            values[at][on] = pair["viewer_share"]
            texts[at][on] = f"{100 * pair['viewer_share']:.0f}"
    title = (
        "Throughput of the download next to a viewer that needs little [Mbit/s]" if left else "Share of the link [%]"
    )
    return _heat(f"{title}\nrows: viewer, columns: download", viewers, downloads, values, texts)


def _heat(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    texts: Sequence[Sequence[str]],
) -> Figure:
    """Draws cells for values from 0 to 1; larger values are darker."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(max(6.5, 2.6 + 0.62 * len(columns)), 1.4 + 0.36 * len(rows)))
        axes = figure.subplots()
        shades = [[float("nan") if value is None else value for value in line] for line in values]
        axes.pcolormesh(np.array(shades), cmap="YlOrBr", vmin=0, vmax=1, edgecolors="white", linewidth=1)
        axes.invert_yaxis()
        for y, line in enumerate(texts):
            for x, text in enumerate(line):
                dark = (values[y][x] or 0) > 0.6
                axes.text(x + 0.5, y + 0.5, text, ha="center", va="center", color="white" if dark else "#22262B")
        # Uses the papers' name because specs are long.
        columns, rows = ([name.replace(*CCP_LB) for name in names] for names in (columns, rows))
        axes.set_xticks(np.arange(len(columns)) + 0.5, labels=columns, rotation=35, ha="left", rotation_mode="anchor")
        axes.set_yticks(np.arange(len(rows)) + 0.5, labels=rows)
        axes.tick_params(length=0, labeltop=True, labelbottom=False)
        axes.spines[:].set_visible(False)
        figure.suptitle(title, fontsize=10)
    return figure


def _axis(metric: str) -> tuple[str, float]:
    """Returns the label of a metric's axis and the factor to its unit."""
    ending = next((ending for ending in _UNITS if metric.endswith(ending)), None)
    unit, factor = _UNITS[ending] if ending else ("", 1.0)
    name = metric.removesuffix(ending if ending in ("_bps", "_bytes", "_s") else "").replace("_", " ")
    return f"{name} [{unit}]" if unit else name, factor


def _colour(controller: str, controllers: Sequence[str]) -> str:
    others = [name for name in controllers if name != "ideal"]
    return "#8C939A" if controller == "ideal" else PALETTE[others.index(controller) % len(PALETTE)]


def save(figure: Figure, file: StrPath, alternative: str = "") -> None:
    """Writes a figure; the file's extension determines the format, such as `.svg`, `.png` or `.pdf`.

    Args:
        figure: Figure.
        file: Path of the file.
        alternative: Text for readers who cannot see the figure; only for SVG.
    """
    with mpl.rc_context(_STYLE):
        if str(file).endswith(".svg"):
            Path(file).write_text(svg_text(figure, alternative), encoding="utf-8")
        else:
            dated = {"CreationDate": None} if str(file).endswith(".pdf") else None
            figure.savefig(file, metadata=dated)


def svg_text(figure: Figure, alternative: str) -> str:
    """Returns a figure as SVG on a white ground, equal on every machine; screen readers read `alternative` instead."""
    figure.patch.set_visible(False)
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    # Hundredths of a point are enough, and the same on every machine. Texts keep their digits.
    text = re.sub(r"-?\d+\.\d{3,}(?![\d<])", lambda number: f"{float(number[0]):.2f}", text)
    # A path is one line.
    text = re.sub(r"\s*\n(?=[LMCQz\"])", "", text)
    text = text.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans', sans-serif")
    head, rest = text.split(">", 1)
    size = re.search(r'viewBox="0 0 (\S+) (\S+)"', head)
    if size is None:
        raise ValueError(f"no size in {head}")
    ground = f'<rect x="0" y="0" width="{size[1]}" height="{size[2]}" fill="#FFFFFF"/>'
    text = f'{head} role="img" aria-label="{escape(alternative)}">\n {ground}{rest}'
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Draws the results in the directories of the command line."""
    parser = argparse.ArgumentParser(prog="playrate_lab.plots", description=main.__doc__)
    parser.add_argument("directories", nargs="+", metavar="DIR", help="directory with the results of `lab run`")
    shows = f"regret, fairness, left; over time {', '.join(QUANTITIES)}; or a metric, for bars"
    parser.add_argument("--show", required=True, metavar="WHAT", help=shows)
    parser.add_argument("--out", required=True, metavar="FILE", help="file to write, such as FILE.svg")
    parser.add_argument("--controllers", default="", metavar="LIST", help="controllers to show, separated by commas")
    parser.add_argument("--case", action="append", default=[], metavar="NAME", help="case to show; may be repeated")
    parser.add_argument("--begin", type=float, default=0.0, metavar="S", help="start of curves, in seconds")
    parser.add_argument("--until", type=float, metavar="S", help="end of curves, in seconds")
    options = parser.parse_args(arguments)
    with exit_on_error(parser.prog):
        save(_figure(options), options.out)


def _figure(options: argparse.Namespace) -> Figure:
    directories, show, cases = options.directories, options.show, options.case
    controllers = [name for name in split(options.controllers, ",") if name]
    if show in QUANTITIES:
        ends = {"begin": options.begin, "until": options.until}
        return curves(*directories, show=show, controllers=controllers, cases=cases, **ends)
    if show == "regret":
        return regret_map(scores.rows(*directories))
    if show in ("fairness", "left"):
        return fairness_map(scores.rows(*directories), left=show == "left")
    return bars(read(*directories), show, controllers=controllers, cases=cases)


if __name__ == "__main__":
    main()
