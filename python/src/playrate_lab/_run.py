"""Runs scenarios on this machine or on a Ray cluster."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import polars as pl

from playrate_lab._command import BadInputError, LabError, StrPath, call, find_lab, split
from playrate_lab._frames import read

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Value of a scenario's key; text as on the command line, such as `"0.5bdp"`.
Value: TypeAlias = "str | int | float | bool"
#: Keys and the values that each takes.
Over: TypeAlias = Mapping[str, Sequence[Value]]
Engine: TypeAlias = Literal["local", "ray"]


def run(
    scenarios: StrPath | Sequence[StrPath],
    *,
    cases: str | Sequence[str] = (),
    controllers: str | Sequence[str] = (),
    trials: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Value] | None = None,
    over: Over | None = None,
    quick: bool = False,
    series: Literal["first", "all"] | None = None,
    out: StrPath | None = None,
    resume: bool = False,
    cores: int | None = None,
    engine: Engine = "local",
    shards: int | None = None,
    lab: StrPath | None = None,
    progress: bool = True,
) -> pl.DataFrame:
    """Makes all runs of the scenarios in virtual time and returns a row for each flow of each run.

    `read` describes the columns. The results depend only on the arguments up to `quick` and on the version of `lab`:
    `cores`, `engine` and `shards` do not change a byte of them.

    Args:
        scenarios: Names or groups of `lab list`, such as `"papers"`, or paths of scenario files (with a `/`, or
            ending in `.toml`).
        cases: Cases to run; all by default.
        controllers: Controllers to run in place of the scenarios' own, such as `["cubic", "video(rate=off)"]`.
        trials: Number of runs of each controller; by default that of each scenario.
        seed: Seed of the first trial; by default that of each scenario.
        settings: Values of keys in place of the scenarios' own, such as `{"path.queue": "0.5bdp"}`.
        over: Keys and the values that each takes, in all combinations, as for `sweep`.
        quick: Use the fewer trials and shorter titles of the scenarios' `quick` tables.
        series: Also write time series into `out`, of each controller's first trial or of all.
        out: Directory for the results, which are not kept without it. With Ray, the shards stay in `out/shards`.
        resume: Keep the results in `out`, make only the missing runs, and return all of them.
        cores: Number of simultaneous runs, by default one per core of this machine. With Ray, cores per shard, by
            default 1.
        engine: `"local"`, or `"ray"` for the cluster to which the program has connected by `ray.init`, or else that of
            `RAY_ADDRESS`; each node needs the same version of `lab`, at the same path, in `PLAYRATE_LAB` or on the
            `PATH`, and the scenario files at the same paths or in Ray's `working_dir`.
        shards: Number of tasks among which Ray divides the runs; by default as many as fit on the cluster at once.
        lab: Path of the program.
        progress: Show the progress on `sys.stderr`.

    Raises:
        BadInputError: if an argument or a scenario is wrong, `out` has results and `resume` is false, or it has shards
            of a Ray cluster that were made with other arguments.
        LabError: if `lab` is not found, or runs fail; those that are finished are kept in `out`.
    """
    program = find_lab(lab)
    selection = [os.fspath(scenario) for scenario in _several(scenarios)]
    for case in _several(cases):
        selection += ["--case", os.fspath(case)]
    if controllers:
        selection += ["--controllers", _list("controllers", [os.fspath(spec) for spec in _several(controllers)])]
    for option, number in (("--trials", trials), ("--seed", seed)):
        if number is not None:
            selection += [option, str(number)]
    for key, value in (settings or {}).items():
        selection += ["--set", f"{key}={_text(value)}"]
    selection += _over_options(over or {})
    if quick:
        selection.append("--quick")
    if series is not None:
        selection.append(f"--series={series}")
    if engine not in ("local", "ray"):
        raise BadInputError(f'unknown engine {engine!r}; expected "local" or "ray"')
    if engine == "local" and shards is not None:
        raise BadInputError(f'shards={shards} needs engine="ray"; one machine divides the runs by itself')
    if shards is not None and shards < 1:
        raise BadInputError(f"`shards` must be at least 1 (got {shards})")
    with _directory(out) as directory:
        if engine == "local":
            options = ["--out", str(directory)]
            options += ["--resume"] if resume else []
            options += [] if cores is None else ["--jobs", str(cores)]
            call(program, ["run", *selection, *options], progress=progress)
        else:
            from playrate_lab import _ray

            _ray.run(program, selection, directory, resume=resume, cores=cores, shards=shards, progress=progress)
        rows = read(directory, lab=program)
    return _with_values(rows, over) if over else rows


def sweep(
    scenario: StrPath,
    over: Over,
    *,
    cases: str | Sequence[str] = (),
    controllers: str | Sequence[str] = (),
    trials: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Value] | None = None,
    quick: bool = False,
    out: StrPath | None = None,
    resume: bool = False,
    cores: int | None = None,
    engine: Engine = "local",
    shards: int | None = None,
    lab: StrPath | None = None,
    progress: bool = True,
) -> pl.DataFrame:
    """Makes the runs of a scenario with each combination of values and returns a row for each flow of each run.

    The first columns are the keys of `over`, with their values as given; those of `read` follow. The other arguments
    are those of `run`.

    Args:
        scenario: Name of `lab list`, or path of a scenario file.
        over: Keys with their tables, such as `"path.queue"`, or short names (`queue`, `rtt`, `rate`, `loss`, `late`,
            `buffer`), and the values that each takes: `{"queue": ["0.5bdp", "1bdp"], "title.variability": [0, 2]}`.
        cases: Cases to run; all by default.
        controllers: Controllers to run in place of the scenario's own.
        trials: Number of runs of each controller with each combination.
        seed: Seed of the first trial.
        settings: Values of other keys in place of the scenario's own.
        quick: Use the fewer trials and the shorter title of the scenario's `quick` table.
        out: Directory for the results, which are not kept without it.
        resume: Keep the results in `out` and make only the missing runs.
        cores: Number of simultaneous runs; with Ray, cores per shard.
        engine: `"local"` or `"ray"`.
        shards: Number of tasks among which Ray divides the runs.
        lab: Path of the program.
        progress: Show the progress on `sys.stderr`.

    Raises:
        BadInputError: if an argument or the scenario is wrong, or `out` has results and `resume` is false.
        LabError: if `lab` is not found, or runs fail; those that are finished are kept in `out`.
    """
    if not over:
        raise BadInputError('`over` has no key; expected keys and values, such as {"queue": ["0.5bdp", "1bdp"]}')
    return run(
        scenario,
        cases=cases,
        controllers=controllers,
        trials=trials,
        seed=seed,
        settings=settings,
        over=over,
        quick=quick,
        out=out,
        resume=resume,
        cores=cores,
        engine=engine,
        shards=shards,
        lab=lab,
        progress=progress,
    )


def _several(names: StrPath | Sequence[StrPath]) -> Sequence[StrPath]:
    return [names] if isinstance(names, (str, os.PathLike)) else names


def _text(value: Value) -> str:
    """Returns a value as written on the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _over_options(over: Over) -> list[str]:
    options = []
    for key, values in over.items():
        if isinstance(values, str) or not values:
            raise BadInputError(f"`over` needs a list of values for {key!r} (got {values!r})")
        options += ["--over", f"{key}={_list(repr(key), [_text(value) for value in values])}"]
    return options


def _list(name: str, values: Sequence[str]) -> str:
    """Returns the values with commas between them, as `lab` reads a list."""
    for value in values:
        if len(split(value, ",")) > 1:
            raise BadInputError(f"the value {value!r} of {name} has a comma, which separates values")
    return ",".join(values)


def _with_values(rows: pl.DataFrame, over: Over) -> pl.DataFrame:
    """Returns the rows with a column for each swept key first, and without the values in the names of the cases."""
    points = []
    for values in itertools.product(*over.values()):
        point = dict(zip(over, values, strict=True))
        points.append((",".join(f"{key}={_text(value)}" for key, value in point.items()), point))
    cases = rows.get_column("case").unique(maintain_order=True).to_list()
    found = []
    for case in cases:
        for name, point in points:
            if case == name or case.endswith("," + name):
                found.append({"case": case, "_own": case[: -len(name)].removesuffix(","), **point})
    if not found:
        raise LabError("the results have no case with these values of `over`")
    values_of = pl.DataFrame(found, infer_schema_length=None)
    joined = rows.join(values_of, on="case", how="left", maintain_order="left")
    others = [name for name in rows.columns if name not in over]
    return joined.with_columns(case=pl.coalesce("_own", "case")).select([*over, *others])


@contextmanager
def _directory(out: StrPath | None) -> Iterator[Path]:
    """Yields `out`, or a temporary directory."""
    if out is not None:
        yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="playrate-lab-") as directory:
        yield Path(directory)
