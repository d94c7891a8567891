"""Results as data frames."""

from __future__ import annotations

import io
import json
import os
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from playrate_lab._command import BadInputError, StrPath, call, find_lab

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Row = Mapping[str, Any]

#: Kinds of time series, as `docs/runs.md` lists them.
Kind: TypeAlias = Literal["transport", "playout", "queue", "events", "segments", "downloads"]

#: Fields that name a flow of a run.
_FLOW = ("scenario", "case", "scenario_hash", "controller", "seed", "viewer")


def read(*directories: StrPath, lab: StrPath | None = None) -> pl.DataFrame:
    """Returns the results of `lab run` in the directories: a row for each flow of each run, duplicates removed.

    Columns are the fields and the metrics of `docs/runs.md`, such as `controller`, `trial`, `seed`, `role`,
    `impaired_share` (from 0 to 1), `startup_delay_s` (seconds), `throughput_bps` (bit/s) and `received_bytes`. A
    value is null where the row has none.

    Args:
        directories: Directories that `lab run` wrote, such as one per shard.
        lab: Path of the program.

    Raises:
        BadInputError: if a directory has no results.
    """
    text = call(find_lab(lab), ["rows", *(os.fspath(directory) for directory in directories)])
    frame = pl.read_ndjson(io.StringIO(text), infer_schema_length=None)
    # In an order of its own, polars names them differently in each process.
    names = dict.fromkeys(name for line in text.splitlines() for name in json.loads(line))
    return frame.select(*names)


def stored(*directories: StrPath) -> Iterator[Row]:
    """Yields the rows in the directories as `lab run` wrote them, without calling the program to compute metrics.

    As with `read`, rows of an interrupted run count, and a flow in two directories counts once. If a flow was run again
    in a directory, its last row counts.

    Raises:
        BadInputError: if two directories have different rows for the same flow.
        OSError: if a directory has no `runs.jsonl`.
    """
    found: dict[tuple[Any, ...], Row] = {}
    for directory in directories:
        own = {tuple(row.get(name) for name in _FLOW): row for row in _lines(Path(directory))}
        for key, row in own.items():
            if found.setdefault(key, row) != row:
                run = " ".join(str(part) for part in key if part != "")
                raise BadInputError(
                    f"the rows of {run} in {os.fspath(directory)} differ from those of another directory"
                )
    yield from found.values()


def _lines(directory: Path) -> Iterator[Row]:
    """Yields the rows of finished and of interrupted runs; skips a line that was cut off by an interruption."""
    whole, part = directory / "runs.jsonl", directory / "runs.part.jsonl"
    for path in [path for path in (whole, part) if path.exists()] or [whole]:
        with path.open(encoding="utf-8") as file:
            for line in file:
                with suppress(json.JSONDecodeError):
                    yield json.loads(line)


def curves(
    *directories: StrPath,
    kind: Kind = "transport",
    controllers: str | Sequence[str] = (),
    cases: str | Sequence[str] = (),
    role: str = "viewer",
) -> pl.DataFrame:
    """Returns the time series that `lab run --series` wrote: a row for each sample of each flow.

    The columns `directory`, `scenario`, `case`, `controller`, `seed` and `viewer` name the flow; those of the kind
    follow. `at_s` is the time in seconds since the viewer's request, or for `transport` since its connection began.

    | kind | columns |
    | --- | --- |
    | `transport` | `window_bytes`, `ssthresh_bytes`, `srtt_s`, `rtt_s`, `capacity_bps` |
    | `playout` | `held_s` (seconds of video in the buffer), `received_bytes` |
    | `queue` | `max_queue_bytes` |
    | `events` | `kind` (`startup`, `stall`, `discarded`), `from_s`, `to_s` |
    | `segments` | times, representation and throughput estimates of each segment |
    | `downloads` | `delivered_bytes`, to all downloads together |

    Args:
        directories: Directories that `lab run --series` wrote.
        kind: Kind of series.
        controllers: Controllers to read, as named in the column `controller`; all by default.
        cases: Cases to read; all by default.
        role: `"viewer"`, or `"bulk"` for downloads, which have `transport` only.

    Raises:
        BadInputError: if there is no such series.
    """
    run = ("scenario", "case", "scenario_hash", "controller", "seed", "role")
    wanted = {"controller": _several(controllers), "case": _several(cases)}
    frames = []
    for directory in directories:
        flows: Counter[tuple[Any, ...]] = Counter()
        for row in stored(directory):
            key = tuple(row[name] for name in run)
            number, flows[key] = flows[key], flows[key] + 1
            if row["role"] != role or any(names and row[name] not in names for name, names in wanted.items()):
                continue
            file = Path(directory, "series", f"{_stem(row, number)}-{kind}.csv")
            if file.exists():
                series = pl.read_csv(file, infer_schema=False).with_columns(pl.exclude("kind").cast(pl.Float64))
                own = [pl.lit(row[name]).alias(name) for name in ("scenario", "case", "controller", "seed", "viewer")]
                frames.append(series.select(pl.lit(os.fspath(directory)).alias("directory"), *own, *series.columns))
    if not frames:
        where = ", ".join(os.fspath(directory) for directory in directories)
        raise BadInputError(f"no {kind} series of such a flow in {where}; lab run writes them with --series")
    return pl.concat(frames)


def _stem(row: Row, number: int) -> str:
    """Returns the common part of the paths below `series` of a flow's files; the flow has this `number` in its role."""
    scenario, case, controller = (
        re.sub(r"[^A-Za-z0-9.-]", "_", row[name]) for name in ("scenario", "case", "controller")
    )
    return "/".join(filter(None, (scenario, case, f"{controller}-seed{row['seed']}-{row['role']}{number}")))


def _several(one_or_more: str | Sequence[str]) -> Sequence[str]:
    return [one_or_more] if isinstance(one_or_more, str) else one_or_more
