"""Makes the rows of a world by `lab run`, and keeps the values that the page needs: `docs/papers/values/BED.csv`.

A file of values has a line for each scenario, case, controller, seed and role of the nominal and the fitted world. A
number is the mean over the flows of that role, or their sum if it is a term of a ratio (`lost_packets`). `@` precedes a
measurement window. In every world, controllers have their names from the nominal scenarios.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from papers import unknowns
from papers.judge import IN_WINDOW, TERMS, Results
from papers.rows import ROWS
from papers.unknowns import ROOT, BadInputError, TestBed, World
from playrate_lab import run as lab_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from papers.unknowns import Value

#: Seed of the first judged trial. The search has seen none of these trials.
JUDGED_SEED = 201
#: Committed values.
VALUES = ROOT / "docs" / "papers" / "values"
#: Worlds that are judged.
JUDGED = ("nominal", "fitted")

KEYS = ("scenario", "case", "controller", "seed", "role", "outcome")
#: Fields of a measurement window that rows read.
WINDOW_FIELDS = tuple(sorted({*IN_WINDOW.values(), "lost_packets", "sent_packets"}))
_SUMMED = {field for fields in TERMS.values() for field in fields}


class Progress:
    """Progress with the remaining time, on standard error."""

    def __init__(self, what: str, total: int) -> None:
        """Starts the clock."""
        self.what, self.total, self.done, self.start = what, total, 0, time.monotonic()

    def step(self) -> None:
        """Counts one more step and prints a line."""
        self.done += 1
        self.total = max(self.total, self.done)
        left = (time.monotonic() - self.start) / self.done * (self.total - self.done)
        print(f"{self.what}: {self.done} of {self.total}, {left / 60:.0f} min left", file=sys.stderr, flush=True)


def scenarios_of(rows: Iterable[str]) -> list[str]:
    """Returns the scenarios that rows read, in their order."""
    return list(dict.fromkeys(scenario for row in rows for scenario in ROWS[row].scenarios))


def controllers_of(scenario: str) -> list[str]:
    """Returns the controllers that any row compares in `scenario`."""
    reading = (row for row in ROWS.values() if scenario in row.scenarios)
    return list(dict.fromkeys(controller for row in reading for controller in row.controllers))


def metrics_of(bed: TestBed, scenario: str) -> list[str]:
    """Returns the fields and metrics that rows or axes read in `scenario`."""
    read = {metric for row in ROWS.values() if scenario in row.scenarios for metric in row.quantities}
    read |= {axis.metric for axis in bed.axes if axis.scenario == scenario}
    return sorted(read | {field for metric in read for field in TERMS.get(metric, ())} | {"windows"})


def make(
    bed: TestBed,
    world: Mapping[str, Value],
    scenarios: Sequence[str],
    quick: bool,
    most_trials: int | None,
    *,
    seed: int | None = None,
    cores: int | None = None,
    out: Path | None = None,
    progress: Progress | None = None,
) -> Results:
    """Makes the runs of a world and returns a row for each flow, with the nominal controllers' names.

    Each scenario is run with the controllers that rows compare in it. Runs already in `out` are reused. By default,
    trials and seeds are those of the scenarios.

    Raises:
        BadInputError: if `out` has rows of another version of a scenario.
    """
    frames = []
    for scenario in scenarios:
        own = int(unknowns.scenario_file(scenario).get("trials", 1))
        controllers = controllers_of(scenario)
        trials = own if most_trials is None else min(own, most_trials)
        rows = lab_run(
            unknowns.scenario_path(scenario),
            controllers=[bed.spec(world, scenario, one) for one in controllers],
            settings=bed.settings(world, scenario),
            trials=trials,
            seed=seed,
            quick=quick,
            cores=cores,
            out=None if out is None else out / scenario,
            resume=out is not None and (out / scenario).exists(),
            progress=False,
        )
        _check(rows, scenario, controllers, None if out is None else out / scenario)
        # The directory may have more trials from earlier runs.
        rows = rows.filter(pl.col("trial") <= trials)
        kept = [name for name in (*KEYS, *metrics_of(bed, scenario)) if name in rows.columns]
        frames.append(_named(rows, scenario, controllers).select(kept))
        if progress is not None:
            progress.step()
    return joined(frames)


def joined(frames: Iterable[Results]) -> Results:
    """Returns the rows of all frames; a column that a frame lacks is null in its rows."""
    empty = [name for frame in frames for name in frame.columns if frame[name].dtype == pl.List(pl.Null)]
    return pl.concat([frame.drop(empty, strict=False) for frame in frames], how="diagonal_relaxed")


def _check(rows: Results, scenario: str, controllers: Sequence[str], directory: Path | None) -> None:
    """Raises an error unless the rows are of one version of the scenario, with these controllers."""
    advice = f"{directory} has rows of another version of {scenario}; remove it"
    versions = rows.group_by("case").agg(pl.col("scenario_hash").n_unique())
    if (versions["scenario_hash"] > 1).any():
        raise BadInputError(advice)
    if (found := len(_run_controllers(rows))) != len(controllers):
        text = f"{len(controllers)} controllers were run, and the rows have {found}"
        raise BadInputError(f"{scenario}: {text}{'' if directory is None else f'; {advice}'}")


def _run_controllers(rows: Results) -> list[str]:
    found: list[str] = rows.filter(pl.col("controller") != "ideal")["controller"].unique(maintain_order=True).to_list()
    return found


def _named(rows: Results, scenario: str, controllers: Sequence[str]) -> Results:
    """Restores the nominal names of the controllers. The rows are in the order of the given controllers."""
    nominal = dict(zip(_run_controllers(rows), controllers, strict=True))
    return rows.with_columns(pl.col("controller").replace(nominal), pl.lit(scenario).alias("scenario"))


def fitted_world(bed: TestBed) -> World:
    """Returns the world that the search found.

    Raises:
        BadInputError: if no search has ended.
    """
    path = unknowns.WORLDS / "fitted" / f"{bed.name}.json"
    if not path.exists():
        raise BadInputError(f"{path} is missing; `python -m papers search {bed.name}` makes it")
    world: World = json.loads(path.read_text(encoding="utf-8"))["world"]
    return world


def run(
    bed: TestBed,
    worlds: Sequence[str],
    *,
    quick: bool,
    cores: int | None,
    out: Path,
    values: Path,
    most_trials: int | None = None,
) -> Path:
    """Makes all rows of a test bed in the named worlds and writes their values; returns the file.

    The file keeps its values of the other worlds.
    """
    scenarios = scenarios_of(bed.fit + bed.judge)
    chosen = {name: fitted_world(bed) if name == "fitted" else {} for name in worlds}
    progress = Progress(f"{bed.name}, scenarios", len(scenarios) * len(chosen))
    path = values / f"{bed.name}.csv"
    frames = read_values(path) if path.exists() else {}
    for name, world in chosen.items():
        mark = hashlib.sha256(json.dumps([world, quick], sort_keys=True).encode()).hexdigest()[:12]
        kept, trials = out / bed.name / mark, 2 if quick else most_trials
        made = make(bed, world, scenarios, quick, trials, seed=JUDGED_SEED, cores=cores, out=kept, progress=progress)
        frames[name] = aggregated(made)
    write_values(path, {name: frames[name] for name in JUDGED if name in frames})
    return path


# --- Values


def aggregated(rows: Results) -> Results:
    """Returns a row for each run and role: means over the flows, sums of the terms of ratios, eight digits."""
    keys = [name for name in KEYS if name != "outcome"]
    wide = _with_window_columns(rows)
    numbers = [name for name in wide.columns if name not in KEYS]
    lists = [name for name in numbers if isinstance(wide[name].dtype, pl.List)]
    flows = [_number(name) for name in numbers if name not in lists]
    failed = (pl.col("outcome") == "failed").any()
    outcome = pl.when(failed).then(pl.lit("failed")).otherwise(pl.lit("complete")).alias("outcome")
    means = wide.group_by(keys, maintain_order=True).agg(outcome, *flows, *(pl.col(name).first() for name in lists))
    return _with_windows(means)


def _number(name: str) -> pl.Expr:
    value = pl.col(name).cast(pl.Float64)
    value = value.sum() if name.partition("@")[0] in _SUMMED else value.mean()
    return pl.when(pl.col(name).is_null().any()).then(None).otherwise(value.round_sig_figs(8)).alias(name)


def _with_window_columns(rows: Results) -> Results:
    """Returns the rows with a column for each field of each window in place of the list of windows."""
    if "windows" not in rows.columns:
        return rows
    marked = rows.with_row_index("_row")
    windows = marked.select("_row", "windows").explode("windows").unnest("windows").drop_nulls("window")
    for window in windows["window"].unique(maintain_order=True):
        fields = [pl.col(name).alias(f"{name}@{window}") for name in WINDOW_FIELDS if name in windows.columns]
        one = windows.filter(pl.col("window") == window).select("_row", *fields)
        marked = marked.join(one, on="_row", how="left", maintain_order="left")
    return marked.drop("_row", "windows")


def _with_windows(wide: Results) -> Results:
    """Returns the rows with a list of windows in place of the columns of `_with_window_columns`."""
    columns = [name for name in wide.columns if "@" in name]
    if not columns:
        return wide
    windows = []
    for window in dict.fromkeys(name.partition("@")[2] for name in columns):
        fields = [pl.col(f"{name}@{window}").alias(name) for name in WINDOW_FIELDS if f"{name}@{window}" in columns]
        windows.append(pl.struct(pl.lit(window).alias("window"), *fields))
    return wide.with_columns(windows=pl.concat_list(windows)).drop(columns)


def write_values(path: Path, frames: Mapping[str, Results]) -> None:
    """Writes the aggregated rows of some worlds."""
    worlds = [frame.with_columns(pl.lit(name).alias("world")) for name, frame in frames.items()]
    wide = _with_window_columns(joined(worlds))
    lists = [name for name in wide.columns if isinstance(wide[name].dtype, pl.List)]
    text = pl.element().cast(pl.String).str.strip_suffix(".0")
    texts = [pl.col(name).list.eval(text).list.join(" ") for name in lists]
    head = ["world", *KEYS]
    rest = sorted(name for name in wide.columns if name not in head and wide[name].null_count() < wide.height)
    path.parent.mkdir(parents=True, exist_ok=True)
    wide.with_columns(texts).select(*head, *rest).write_csv(path)


def read_values(path: Path) -> dict[str, Results]:
    """Reads aggregated rows by world.

    Raises:
        BadInputError: if the file is missing.
    """
    if not path.exists():
        raise BadInputError(f"{path} is missing; `python -m papers run {path.stem}` makes it")
    texts = {name: pl.String for name in ("world", *KEYS) if name != "seed"}
    table = pl.read_csv(path, schema_overrides=texts, infer_schema_length=None).with_columns(
        pl.col("case").fill_null("")
    )
    lists = [name for name in table.columns if name not in texts and table[name].dtype == pl.String]
    table = table.with_columns(pl.col(name).str.split(" ").cast(pl.List(pl.Float64), strict=False) for name in lists)
    by_world = table.partition_by("world", as_dict=True, include_key=False, maintain_order=True)
    return {str(world): _with_windows(frame) for (world,), frame in by_world.items()}
