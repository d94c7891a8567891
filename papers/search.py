"""Searches for the world in which most of the fitted claims agree, in fixed batches.

First come the nominal world and a random sample, then batches that optuna suggests. The search asks for all worlds of a
batch before it reports the first result, and reports the results in the order of the batch. So a seed gives the same
worlds with any number of processes. Every result is a line of `trials.jsonl`. A resumed search asks for the same worlds
again and reuses the results in that file.

A world's results are decided by the means of one short trial. The best worlds are tried again with full titles, and
ranked by the fitted primaries that agree.
"""

from __future__ import annotations

import hashlib
import json
import math
import multiprocessing
import statistics
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import optuna
import polars as pl
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from papers import runs, unknowns
from papers.judge import Outcome, Results
from papers.rows import ROWS
from papers.unknowns import BadInputError, TestBed, Unknown, World
from playrate_lab import BadInputError as LabRefused
from playrate_lab import LabError, find_lab
from playrate_lab._command import call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from optuna.distributions import BaseDistribution

    from papers.judge import Finding
    from papers.unknowns import Value

#: Seed of the first trial with full titles. Short trials have the scenarios' own seeds; judged trials have others.
BEST_SEED = 101
#: A search ends after this many requests per world that it needs, even if many of the worlds were the same.
PATIENCE = 3
#: Smallest share of the random sample that must keep an axis, or else it constrains nothing: a search that cannot keep
#: an axis would look for little else.
KEPT = 0.1
#: Violation of a world in which a run could not be made.
ERROR = 100.0
#: Words for the fields of a store's header, for errors.
_WHY = {"declared": "declared unknowns", "program": "version of lab", "claims": "claims (p*.py or judge.py)"}
#: Result of a world: `findings` by claim, `axes` by axis, and `error` if a run could not be made.
Result: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Task:
    """A world to try."""

    bed: str
    world: World
    #: Rows that are judged.
    rows: tuple[str, ...]
    #: False for full titles and the full number of trials.
    short: bool

    @property
    def key(self) -> str:
        """Text that equal worlds share."""
        return _key(self.world)


def _key(world: World) -> str:
    return json.dumps(world, sort_keys=True, ensure_ascii=False)


Evaluate: TypeAlias = "Callable[[Task], Result]"


# --- One world


def evaluate(task: Task) -> Result:
    """Makes the runs of a world and returns the findings on its rows and axes."""
    bed = unknowns.load(task.bed)
    scenarios = list(dict.fromkeys([*runs.scenarios_of(task.rows), *(axis.scenario for axis in bed.axes)]))
    trials, seed = (1, None) if task.short else (bed.search.trials, BEST_SEED)
    try:
        rows = runs.make(bed, task.world, scenarios, task.short, trials, seed=seed, cores=1)
    except LabRefused:
        raise
    except LabError as error:
        return {"findings": {}, "axes": {}, "error": str(error)}
    if task.short:
        rows = twice(rows)
    found = {row: ROWS[row].judge(rows) for row in task.rows}
    findings = {
        f"{row}/{number}": summary(one)
        for row, judgement in found.items()
        for number, one in enumerate((judgement.primary, *judgement.secondary))
    }
    return {"findings": findings, "axes": {axis.name: reach(rows, axis) for axis in bed.axes}}


def twice(rows: Results) -> Results:
    """Returns each trial twice, so that intervals have no width and the means decide."""
    return pl.concat([rows, rows.with_columns(pl.col("seed") + 1_000_000)])


def summary(finding: Finding) -> dict[str, Any]:
    """Returns the part of a finding that a search keeps."""
    return {
        "agrees": finding.outcome is Outcome.AGREES,
        "estimate": None if finding.outcome is None else _six_digits(finding.estimate),
        "margin": finding.margin,
        "quantity": finding.quantity,
    }


def reach(rows: Results, axis: unknowns.Axis) -> float | None:
    """Returns the largest mean of a controller on an axis, in the axis's unit; None if its scenario was not run."""
    mine = rows.filter((pl.col("scenario") == axis.scenario) & (pl.col("controller") != "ideal"))
    if mine.is_empty() or axis.metric not in mine.columns:
        return None
    means = mine.group_by("controller").agg(pl.col(axis.metric).cast(pl.Float64).mean())
    return _six_digits(means[axis.metric].max())


def _six_digits(value: object) -> float | None:
    return float(f"{value:.6g}") if isinstance(value, (int, float)) and math.isfinite(value) else None


# --- What the search sees of it


@dataclass(frozen=True)
class View:
    """The part of the results that a search sees, and its scores for them. The random sample determines both."""

    #: Fitted claims that no unseen quantity decides in any world of the sample.
    claims: tuple[str, ...]
    #: Median distance of an estimate from zero in the sample, by claim and quantity.
    scale: Mapping[tuple[str, str], float]
    #: Ends of the axes that constrain a world.
    limits: Mapping[str, float]

    @classmethod
    def of(cls, bed: TestBed, sample: Sequence[Result]) -> View:
        """Determines the claims and axes that count, and the scale of estimates."""
        ran: dict[str, set[str]] = {}
        sizes: dict[tuple[str, str], list[float]] = {}
        for result in sample:
            for claim, found in result["findings"].items():
                if found["estimate"] is not None:
                    ran.setdefault(claim, set()).add(found["quantity"])
                    sizes.setdefault((claim, found["quantity"]), []).append(abs(found["estimate"]))
        seen = [claim for claim, by in ran.items() if all(bed.sees(claim.rpartition("/")[0], one) for one in by)]
        scale = {key: statistics.median(values) for key, values in sizes.items()}
        ends = {axis.name: axis.most for axis in bed.axes}
        kept = Counter(name for result in sample for name, most in _reached(result) if most <= ends[name])
        limits = {name: most for name, most in ends.items() if kept[name] >= KEPT * len(sample)}
        return cls(tuple(sorted(seen)), scale, limits)

    def score(self, result: Result) -> float:
        """Returns a world's score: mean over the claims, where a primary counts twice; from -1 to 1."""
        weights = {claim: 2 if _is_primary(claim) else 1 for claim in self.claims}
        supports = (weight * self._support(claim, result) for claim, weight in weights.items())
        return sum(supports) / max(1, sum(weights.values()))

    def _support(self, claim: str, result: Result) -> float:
        """Returns the support of a claim: half by whether it agrees, half by how far it is from its limit."""
        found = result["findings"].get(claim)
        if found is None or found["estimate"] is None:
            return -1.0
        estimate, margin = float(found["estimate"]), found["margin"]
        if margin is None:
            size = self.scale.get((claim, found["quantity"]), 0.0) or 1.0
            distance = max(-1.0, min(1.0, estimate / size))
        else:
            distance = 1.0 if found["agrees"] else 2 * margin / max(abs(estimate), margin, 1e-12) - 1
        return 0.5 * (1.0 if found["agrees"] else -1.0) + 0.5 * distance

    def violations(self, result: Result) -> dict[str, float]:
        """Returns how far a world is beyond each axis, as the logarithm of the ratio; zero or less if it is not."""
        if "error" in result:
            return {"error": ERROR}
        return {
            name: math.log(max(most, 1e-9) / self.limits[name])
            for name, most in _reached(result)
            if name in self.limits
        }

    def beyond(self, result: Result) -> float:
        """Returns the sum of the violations."""
        return sum(max(0.0, one) for one in self.violations(result).values())

    def rank(self, result: Result) -> tuple[float, int, int, float]:
        """Orders worlds with full titles, the best first: axes kept, seen primaries and claims that agree, score."""
        agreeing = [claim for claim in self.claims if result["findings"].get(claim, {}).get("agrees")]
        return (round(self.beyond(result), 4), -sum(map(_is_primary, agreeing)), -len(agreeing), -self.score(result))


def _reached(result: Result) -> list[tuple[str, float]]:
    """Returns the axes that a world has values on, and its largest value on each."""
    return [(name, most) for name, most in result["axes"].items() if most is not None]


def _is_primary(claim: str) -> bool:
    return claim.endswith("/0")


# --- Many worlds


@dataclass
class Store:
    """Results of worlds in a file of JSON lines, in the order of their requests."""

    path: Path
    header: dict[str, Any]
    results: dict[str, Result] = field(default_factory=dict)
    #: Text of each world, in its order.
    order: dict[str, int] = field(default_factory=dict)
    lines: dict[str, str] = field(default_factory=dict)

    def load(self) -> None:
        """Reads the results of an earlier search; skips a line that was cut off by an interruption.

        Raises:
            BadInputError: if the file belongs to a different search.
        """
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(_line(self.header), encoding="utf-8")
            return
        header, *lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        if header != _line(self.header):
            kept = json.loads(header)
            other = [_WHY.get(name, name) for name in self.header if kept.get(name) != self.header[name]]
            raise BadInputError(f"{self.path} was made with other {', '.join(other)}; remove it, or give another --out")
        whole = [line for line in lines if line.endswith("\n")]
        for line in whole:
            self._keep(line)
        if len(whole) < len(lines):
            self.path.write_text("".join([header, *whole]), encoding="utf-8")

    def _keep(self, line: str) -> None:
        kept = json.loads(line)
        key = _key(kept["world"])
        self.results[key], self.lines[key] = kept["result"], line

    def add(self, task: Task, origin: str, result: Result) -> None:
        """Appends a result."""
        line = _line({"number": self.order[task.key], "origin": origin, "world": task.world, "result": result})
        self._keep(line)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line)

    def sort(self) -> None:
        """Sorts the lines of known worlds into their order, whichever finished first."""
        rank = {key: self.order.get(key, len(self.order)) for key in self.lines}
        text = _line(self.header) + "".join(self.lines[key] for key in sorted(self.lines, key=lambda key: rank[key]))
        temporary = self.path.with_suffix(".part")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self.path)


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class Runner:
    """Tries worlds in the processes of a pool."""

    evaluate: Evaluate
    pool: ProcessPoolExecutor
    progress: runs.Progress

    def results(self, store: Store, tasks: Sequence[Task], origin: str) -> list[Result]:
        """Returns the results of all tasks; makes those that the store lacks and adds them to it."""
        missing = {task.key: task for task in tasks if task.key not in store.results}
        for task in tasks:
            store.order.setdefault(task.key, len(store.order))
        running = {self.pool.submit(self.evaluate, task): task for task in missing.values()}
        try:
            for future in as_completed(running):
                store.add(running[future], origin, future.result())
                self.progress.step()
        except BaseException:
            self.pool.shutdown(cancel_futures=True)
            raise
        if missing:
            store.sort()
        return [store.results[task.key] for task in tasks]


def search(bed: TestBed, out: Path, *, processes: int, evaluate: Evaluate = evaluate) -> dict[str, Any]:
    """Makes a search, reusing the results in `out`; returns the content of `papers/worlds/fitted/BED.json`."""
    sizes = bed.search
    header = {
        "format": "papers-trials",
        "test_bed": bed.name,
        "declared": declared(bed),
        "optuna": optuna.__version__,
        "program": program(),
        "claims": claims(),
    }
    store, full = (Store(out / f"{name}.jsonl", header) for name in ("trials", "best"))
    for one in (store, full):
        one.load()
    known = len(store.results) + len(full.results)
    progress = runs.Progress(f"{bed.name}, worlds", 1 + sizes.worlds + sizes.best - known)
    # polars does not survive a fork.
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        return _searched(bed, Runner(evaluate, pool, progress), store, full)


def _searched(bed: TestBed, runner: Runner, store: Store, full: Store) -> dict[str, Any]:
    sizes, every = bed.search, bed.fit + bed.judge
    nominal = runner.results(store, [Task(bed.name, {}, every, short=True)], "nominal")[0]
    sample = [Task(bed.name, bed.random_world(number), every, short=True) for number in range(1, sizes.random + 1)]
    results = runner.results(store, sample, "random")
    view = View.of(bed, results)
    tried = dict(zip((task.key for task in sample), sample, strict=True))
    for task in _ask(bed, view, sample, runner, store):
        tried.setdefault(task.key, task)

    ranked = sorted(tried, key=lambda key: (view.beyond(store.results[key]), -view.score(store.results[key])))
    best = [Task(bed.name, tried[key].world, bed.fit, short=False) for key in ranked[: sizes.best]]
    again = runner.results(full, best, "best")
    fitted = min(zip(best, again, strict=True), key=lambda pair: view.rank(pair[1]))[0]
    scores = {task.key: view.score(store.results[task.key]) for task in tried.values()}
    return {
        "test_bed": bed.name,
        "declared": declared(bed),
        "seed": sizes.seed,
        "world": fitted.world,
        "tried": len(tried),
        "within_axes": sum(view.beyond(store.results[key]) == 0 for key in tried),
        "free_axes": [axis.name for axis in bed.axes if axis.name not in view.limits],
        "seen": list(view.claims),
        "scores": {
            "nominal": round(view.score(nominal), 4),
            "random": [round(scores[task.key], 4) for task in sample],
            "search": [round(score, 4) for key, score in scores.items() if key not in {task.key for task in sample}],
            "fitted": round(scores[fitted.key], 4),
        },
        "landscape": {one.name: _landscape(one, sample, [scores[task.key] for task in sample]) for one in bed.unknowns},
        "robustness": _robustness(results),
    }


def _ask(bed: TestBed, view: View, sample: Sequence[Task], runner: Runner, store: Store) -> list[Task]:
    """Asks optuna for batches of worlds until there are enough different ones; returns all that it asked for."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=bed.search.seed, n_startup_trials=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions = {one.name: distribution(one) for one in bed.unknowns}
    for task in sample:
        study.add_trial(
            optuna.trial.create_trial(
                value=view.score(store.results[task.key]),
                params={one.name: encoded(one, task.world[one.name]) for one in bed.unknowns},
                distributions=distributions,
                constraints=view.violations(store.results[task.key]),
            )
        )
    different, asked = {task.key for task in sample}, list[Task]()
    while len(different) < bed.search.worlds and len(asked) < PATIENCE * bed.search.worlds:
        trials = [study.ask(distributions) for _ in range(bed.search.batch)]
        worlds = [{one.name: decoded(one, trial.params[one.name]) for one in bed.unknowns} for trial in trials]
        tasks = [Task(bed.name, world, bed.fit, short=True) for world in worlds]
        for trial, result in zip(trials, runner.results(store, tasks, "search"), strict=True):
            for name, value in view.violations(result).items():
                trial.set_constraint(name, value)
            study.tell(trial, view.score(result))
        asked += tasks
        different |= {task.key for task in tasks}
    return asked


def declared(bed: TestBed) -> str:
    """Returns a hash of everything that was declared before the search, except the reasons."""
    unknowns_alone = tuple(replace(one, why="") for one in bed.unknowns)
    return hashlib.sha256(repr(replace(bed, about="", why="", unknowns=unknowns_alone)).encode()).hexdigest()[:16]


def program() -> str:
    """Returns the version of the program that makes the runs."""
    return call(find_lab(), ["--version"]).strip()


def claims(directory: Path = Path(__file__).parent) -> str:
    """Returns a hash of the functions that judge claims."""
    files = [*sorted(directory.glob("p[0-9]*.py")), directory / "judge.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def distribution(unknown: Unknown) -> BaseDistribution:
    """Returns optuna's distribution of an unknown: a range, or the texts of the choices."""
    if unknown.range is None:
        return CategoricalDistribution([json.dumps(choice, ensure_ascii=False) for choice in unknown.choices])
    least, most = unknown.range
    if isinstance(least, int) and isinstance(most, int):
        return IntDistribution(least, most, log=unknown.log)
    return FloatDistribution(least, most, log=unknown.log)


def encoded(unknown: Unknown, value: Value) -> Value:
    """Returns a value in optuna's form."""
    return value if unknown.range is not None else json.dumps(value, ensure_ascii=False)


def decoded(unknown: Unknown, value: str | float) -> Value:
    """Returns one of optuna's values in the form used by worlds."""
    if not isinstance(value, str):
        return unknown.rounded(value)
    choice: Value = json.loads(value)
    return choice


# --- What is kept for the page


def _landscape(unknown: Unknown, sample: Sequence[Task], scores: Sequence[float]) -> list[dict[str, Any]]:
    """Returns the mean score of the random worlds for each choice, or for each quarter of the values of a range."""
    values = [task.world[unknown.name] for task in sample]
    order = unknown.choices or tuple(sorted(values, key=lambda value: float(str(value))))
    each = 1 if unknown.choices else len(order) / 4
    groups = [int(order.index(value) / each) for value in values]
    found = []
    for group in sorted(set(groups)):
        mine = [(value, score) for value, score, at in zip(values, scores, groups, strict=True) if at == group]
        ends = sorted({order.index(value) for value, _ in mine})
        text = " to ".join(dict.fromkeys(unknown.text(order[end]) for end in (ends[0], ends[-1])))
        found.append({"value": text, "worlds": len(mine), "mean": round(statistics.fmean(s for _, s in mine), 4)})
    return found


def _robustness(results: Sequence[Result]) -> dict[str, dict[str, int]]:
    """Returns for each claim the number of random worlds where it agrees by the means, out of those where it was run.

    A world where a run failed counts as run, without agreement.
    """
    counts: dict[str, dict[str, int]] = {}
    for result in results:
        for claim, found in result["findings"].items():
            if found["estimate"] is not None:
                count = counts.setdefault(claim, {"agrees": 0, "of": 0})
                count["agrees"] += found["agrees"]
                count["of"] += 1
    failed = sum("error" in result for result in results)
    return {claim: {**count, "of": count["of"] + failed} for claim, count in counts.items()}
