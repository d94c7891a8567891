"""Who takes what from whom: a viewer and one endless download on one link, for every pair of controllers.

`docs/fairness.md` explains the numbers. The rows are those of

    lab run fairness-needy fairness-calm --over bulk.controller=cubic,reno,video --controllers cubic,reno,video

`pairs(scores.rows(DIR))` returns a data frame. `python -m playrate_lab.fairness DIR...` prints tables, or JSON with
`--json`.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import polars as pl

from playrate_lab import scores
from playrate_lab._command import exit_on_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from playrate_lab._frames import Row

#: Scenarios by what their viewer demands: 1.5 times its fair share, or 0.4 of it.
DEMANDS = {"fairness-needy": "needy", "fairness-calm": "calm"}
_RUN = ("scenario", "case", "controller")


def pairs(rows: scores.Rows) -> pl.DataFrame:
    """Returns the numbers of each pair, all its trials together: a row for each demand, viewer and download.

    | column | meaning |
    | --- | --- |
    | `demand` | `needy` (the viewer needs 1.5 times its fair share) or `calm` (0.4 of it) |
    | `controller`, `download` | controllers of the viewer and of the download |
    | `viewer_bps`, `download_bps` | payload received over the time that the flow was present, in bit/s |
    | `viewer_share`, `download_share` | these over the rate of the link |
    | `title_bps`, `link_bps` | rate of the title; rate of the link |
    | `jain` | Jain's index of the two: 1 if they are equal, 0.5 if one has all; null if both have nothing |
    | `score` | impaired share of the viewer, from 0 to 1 |
    | `harm` | 1 less the download's throughput over that with a viewer of its own controller; needy only |

    Args:
        rows: Rows of the scenarios `fairness-needy` and `fairness-calm`, of `scores.rows` or `playrate_lab.read`.

    Raises:
        ValueError: if there are no such rows, or a pair was run on several paths.
    """
    of_pairs = (row for (scenario, _), of in scores.by_place(rows).items() if scenario in DEMANDS for row in of)
    flows = pl.DataFrame([_flow(row) for row in of_pairs], schema=_SCHEMA)
    if flows.is_empty():
        raise ValueError(f"there are no rows of the scenarios {' and '.join(DEMANDS)}")
    rate = 8 * pl.col("bytes").sum() / pl.col("seconds").sum()
    viewers = flows.filter(role="viewer").group_by(_RUN, maintain_order=True)
    downloads = flows.filter(role="bulk").group_by(_RUN, maintain_order=True)
    both = viewers.agg(viewer_bps=rate, score=pl.col("score").mean(), title_bps=pl.col("title_bps").first()).join(
        downloads.agg(
            download=pl.col("flow_controller").first(), download_bps=rate, link_bps=pl.col("link_bps").first()
        ),
        on=_RUN,
        maintain_order="left",
    )
    key = ("scenario", "controller", "download")
    if both.select(key).is_duplicated().any():
        raise ValueError("a pair was run on several paths; pass the rows of one path")
    own = both.filter(pl.col("controller") == pl.col("download"), scenario="fairness-needy")
    both = both.join(
        own.select("scenario", "download", own_bps="download_bps"), on=("scenario", "download"), how="left"
    )
    viewer, download = pl.col("viewer_bps"), pl.col("download_bps")
    squares = 2 * (viewer**2 + download**2)
    return both.select(
        pl.col("scenario").replace_strict(DEMANDS).alias("demand"),
        "controller",
        "download",
        viewer,
        download,
        (viewer / pl.col("link_bps")).alias("viewer_share"),
        (download / pl.col("link_bps")).alias("download_share"),
        "title_bps",
        "link_bps",
        pl.when(squares > 0).then((viewer + download) ** 2 / squares).alias("jain"),
        "score",
        pl.when(pl.col("own_bps") > 0).then(1 - download / pl.col("own_bps")).alias("harm"),
    )


_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    **dict.fromkeys((*_RUN, "role", "flow_controller"), pl.String),
    **dict.fromkeys(("bytes", "seconds", "title_bps", "link_bps", "score"), pl.Float64),
}


def _flow(row: Row) -> dict[str, Any]:
    return {
        **{name: row[name] for name in (*_RUN, "role", "flow_controller")},
        "bytes": row["received_bytes"],
        "seconds": row["download_s"],
        "title_bps": row["title_rate_bps"],
        "link_bps": row["link_rate_bps"],
        "score": scores.score(row),
    }


def tables(pairs: pl.DataFrame) -> Iterator[str]:
    """Yields the lines of five tables: viewers are rows, downloads are columns."""
    shares = pl.format(
        "{}/{}", *((100 * pl.col(name)).round().cast(pl.Int64) for name in ("viewer_share", "download_share"))
    )
    for demand, title, text in (
        ("needy", "both want all. Viewer/download, % of the link", shares),
        ("needy", "Jain's index: 1 is equal", _rounded("jain", 2)),
        ("needy", "harm, %: 1 - the download's throughput over that with its own kind", _rounded("harm", 0, 100)),
        ("calm", "the download should get more than half. Viewer/download, % of the link", shares),
        ("calm", "the viewer's score, %: 0 is not impaired", _rounded("score", 1, 100)),
    ):
        of = pairs.filter(demand=demand)
        if of.is_empty():
            continue
        yield f"Title of {of['title_bps'][0] / 1e6:g} Mbit/s: {title}"
        cells = of.with_columns(text=text).pivot(on="download", index="controller", values="text").fill_null("-")
        yield from _aligned([["", *cells.columns[1:]], *map(list, cells.rows())])
        yield ""


def _rounded(name: str, decimals: int, factor: float = 1) -> pl.Expr:
    def text(value: float) -> str:
        # Adding 0 makes a 0 of -0.
        return f"{round(factor * value, decimals) + 0.0:.{decimals}f}"

    return pl.col(name).map_elements(text, return_dtype=pl.String)


def _aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0]), *cells])


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints who takes what from whom, by the rows of fairness-needy and fairness-calm in the directories."""
    parser = argparse.ArgumentParser(prog="playrate_lab.fairness", description=main.__doc__)
    parser.add_argument("directories", nargs="+", metavar="DIR", help="directory with the results of `lab run`")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    options = parser.parse_args(arguments)
    with exit_on_error(parser.prog):
        found = pairs(scores.rows(*options.directories))
    print(json.dumps(found.to_dicts(), indent=1) if options.json else "\n".join(tables(found)))


if __name__ == "__main__":
    main()
