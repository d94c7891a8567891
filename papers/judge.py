"""Judges claims about controllers: outcomes, intervals over trials, effect sizes, chance level.

A claim is made of comparisons, and a comparison of values that share their trials: all controllers have the same seeds,
so each seed gives one difference. A comparison *agrees* if the 95 % interval of the mean difference lies wholly on the
claim's side, is *contradicted* if it lies wholly on the other side, and shows *no difference* otherwise. A claim of
equality agrees if the interval lies within a margin. Each margin is a constant in the code, with its reason.

`all_of` is decided by its weakest comparison, `majority` by the one that completes the majority.
"""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import stdtrit

from playrate_lab.compare import FEWEST_FOR_BOOTSTRAP, RATIOS, cliffs_delta, interval, paired

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

#: Rows of one world, as `playrate_lab.read` returns them, with the controllers' names of the nominal scenarios.
Results: TypeAlias = pl.DataFrame
Floats: TypeAlias = NDArray[np.float64]
#: Labels that are shuffled for the chance level.
Shuffled = Literal["controllers", "conditions"]

#: Shuffles of the labels for the chance level, and their seed.
SHUFFLES, SEED = 200, 20_121_013
#: Terms of the metrics that are a ratio of sums over the flows of a run.
TERMS = {metric: tuple(ratio.meta.root_names()) for metric, ratio in RATIOS.items()}
#: Metrics that have another name in a measurement window.
IN_WINDOW = {"throughput_bps": "goodput_bps"}
#: Units by the end of a metric's name, each with the unit for people and its size.
UNITS = {
    "_bps": ("bit/s", "Mbit/s", 1e6),
    "_bytes": ("bytes", "kB", 1e3),
    "_s": ("s", "ms", 1e-3),
    "_share": ("share", "%", 0.01),
    "_ratio": ("share", "%", 0.01),
    "_packets": ("packets", "packets", 1),
    "frames_discarded": ("frames", "frames", 1),
    "underflow_events": ("underflows", "underflows", 1),
    "underflows_per_minute": ("1/min", "per minute", 1),
}


class Outcome(str, Enum):
    """Outcome of a claim."""

    AGREES = "agrees"
    NO_DIFFERENCE = "no difference seen"
    CONTRADICTED = "contradicted"

    def __str__(self) -> str:
        """Returns the words."""
        return self.value


@dataclass(frozen=True)
class Finding:
    """One claim, decided. Numbers are those of the comparison that decides."""

    claim: str  #: In our words.
    quotation: str  #: In the paper's words.
    place: str  #: In the paper.
    outcome: Outcome | None  #: None if rows that it needs are missing.
    #: Without a margin the mean difference, positive on the claim's side; with a margin what must lie within it.
    estimate: float | None
    low: float | None  #: End of the 95 % interval; None for a single trial.
    high: float | None  #: End of the 95 % interval; None for a single trial.
    unit: str
    #: Cliff's delta, positive on the claim's side. With a margin: share of trials within it less that of the others.
    effect: float | None
    chance: float | None  #: Share of shuffles of the labels that agree too; of primaries only.
    text: str  #: The numbers in words.
    margin: float | None = None  #: Of a claim of equality, in `unit`.
    quantity: str = ""  #: Metric of the comparison that decides.


@dataclass(frozen=True)
class Magnitude:
    """A number that the paper prints, with ours."""

    what: str
    quotation: str
    place: str
    printed: str
    measured: str
    within: bool | None  #: Whether ours is near the printed one; None if it is not judged or not measured.


@dataclass(frozen=True)
class Judgement:
    """What the results say of a row."""

    primary: Finding
    secondary: tuple[Finding, ...] = ()
    magnitudes: tuple[Magnitude, ...] = ()


@dataclass(frozen=True)
class Row:
    """A row of the papers' claims, which is judged by its primary."""

    id: str
    paper: str
    test_bed: str
    says: str  #: The primary in one sentence.
    scenarios: tuple[str, ...]  #: Scenarios that it reads.
    controllers: tuple[str, ...]  #: Specs that it compares, as the scenarios have them.
    quantities: tuple[str, ...]  #: Metrics of its primary and secondaries.
    judge: Callable[[Results], Judgement]


# --- Values


@dataclass(frozen=True, eq=False)
class Values:
    """A quantity of one controller in one condition, trial by trial."""

    name: str
    quantity: str
    unit: str
    x: Floats  #: First axis: as observed, then after each shuffle of the labels. Second axis: trials.

    @property
    def mean(self) -> float:
        """Mean over the trials that have a value; NaN if none has."""
        return float(_mean(self.x)[0])

    def __str__(self) -> str:
        """Returns name and mean for people."""
        return f"{self.name} {words(self.mean, self.unit)}".strip()

    def __sub__(self, other: Values) -> Values:
        """Returns the difference, trial by trial."""
        return replace(self, name=f"{self.name} less {other.name}", x=self.x - other.x)

    def __rmul__(self, factor: float) -> Values:
        """Returns a multiple."""
        return replace(self, name=f"{factor:g} times {self.name}", x=factor * self.x)


def mean_of(values: Iterable[Values], name: str) -> Values:
    """Returns the mean of several values, trial by trial."""
    every = list(values)
    return replace(every[0], name=name, x=np.mean([one.x for one in every], axis=0))


def median_of(values: Iterable[Values], name: str) -> Values:
    """Returns the median of several values, trial by trial."""
    every = list(values)
    return replace(every[0], name=name, x=np.median([one.x for one in every], axis=0))


def concordance(first: Mapping[str, Values], second: Mapping[str, Values]) -> Values:
    """Returns Kendall's tau of two quantities over the controllers, trial by trial: 1 if both order them alike."""
    one, other = (np.array([values.x for values in of.values()]) for of in (first, second))
    left, right = np.triu_indices(len(one), 1)
    x = np.mean(np.sign(one[left] - one[right]) * np.sign(other[left] - other[right]), axis=0)
    names = " with ".join(next(iter(of.values())).quantity for of in (first, second))
    return Values("tau", names, "", x)


class Trials:
    """The values of some controllers in some conditions, as observed and with shuffled labels.

    A condition is a scenario, or a scenario and its case: `p15-pob/pob448`. Labels are shuffled within each seed: those
    of the controllers in each condition, or those of the conditions for each controller, whichever the claim compares.
    """

    def __init__(
        self,
        results: Results,
        conditions: Sequence[str],
        controllers: Sequence[str],
        *,
        shuffle: Shuffled = "controllers",
        shuffles: int = SHUFFLES,
    ) -> None:
        """Selects the rows of the conditions."""
        self.conditions, self.controllers = tuple(conditions), tuple(controllers)
        self.metrics: set[str] = set()  #: Metrics that were read.
        self._rows = {condition: _rows_of(results, condition) for condition in self.conditions}
        self._seeds = sorted({seed for rows in self._rows.values() for seed in rows["seed"]})
        shape = (len(self.conditions), len(self.controllers), len(self._seeds))
        self._axis = 1 if shuffle == "conditions" else 2
        draws = np.random.default_rng(SEED).random((shuffles, *shape))
        # The first order is the observed one.
        self._order = np.concatenate([np.indices(shape)[self._axis - 1][None], draws.argsort(axis=self._axis)])
        self._read: dict[tuple[str, str], Floats] = {}

    def of(self, metric: str, at: str = "", role: str = "viewer") -> dict[str, Values]:
        """Returns a metric's values by controller.

        Args:
            metric: Metric of `docs/runs.md`. With `excess_` before it, less that of the ideal row of the same seed;
                with `@50s..150s` behind it, in that measurement window; with `[4]`, the fourth of a list.
            at: Condition; the first if empty.
            role: Flows that count: `viewer`, `bulk`, or `all`.
        """
        self.metrics.add(metric.removeprefix("excess_").partition("@")[0].partition("[")[0])
        if (metric, role) not in self._read:
            raw = np.array([self._column(rows, metric, role) for rows in self._rows.values()])
            stacked = np.broadcast_to(raw, self._order.shape)
            self._read[metric, role] = np.take_along_axis(stacked, self._order, self._axis)
        at = at or self.conditions[0]
        block = self._read[metric, role][:, self.conditions.index(at)]
        suffix = f" at {at}" if len(self.conditions) > 1 else ""
        name = metric.partition("@")[0]
        return {
            controller: Values(controller + suffix, name, unit_of(name), block[:, index])
            for index, controller in enumerate(self.controllers)
        }

    def run(self, conditions: Iterable[str]) -> list[str]:
        """Returns the conditions with runs of every controller; all of them if there is none."""
        every = list(conditions)
        ran = [at for at in every if set(self.controllers) <= set(self._rows[at]["controller"])]
        return ran or every

    def _column(self, rows: pl.DataFrame, metric: str, role: str) -> Floats:
        values = _per_trial(rows, metric.removeprefix("excess_"), role)
        if metric.startswith("excess_"):
            ideal = {seed: value for (controller, seed), value in values.items() if controller == "ideal"}
            # Trials that do not vary share one ideal row.
            shared = next(iter(ideal.values())) if len(ideal) == 1 else math.nan
            values = {key: value - ideal.get(key[1], shared) for key, value in values.items()}
        found = [[values.get((controller, seed), math.nan) for seed in self._seeds] for controller in self.controllers]
        return np.array(found, dtype=np.float64)


def _rows_of(results: Results, condition: str) -> pl.DataFrame:
    scenario, _, case = condition.partition("/")
    if "scenario" not in results.columns:
        return pl.DataFrame(schema={"controller": pl.String, "seed": pl.Int64, "role": pl.String})
    rows = results.filter(pl.col("scenario") == scenario)
    return rows.filter(pl.col("case").fill_null("") == case) if "case" in rows.columns else rows


def _per_trial(rows: pl.DataFrame, metric: str, role: str) -> dict[tuple[str, int], float]:
    """Returns a metric by controller and seed: the mean over the flows, or the ratio of their sums.

    A trial is left out if one of its flows failed or lacks the metric. Rows without the terms of a ratio have its mean.
    """
    if role != "all":
        rows = rows.filter(pl.col("role") == role)
    if "outcome" in rows.columns:
        failed = (pl.col("outcome") == "failed").any().over("controller", "seed")
        rows = rows.filter(~failed)
    name, _, window = metric.partition("@")
    name, _, place = name.partition("[")
    if window:
        if "windows" not in rows.columns:
            return {}
        rows = rows.select("controller", "seed", "windows").explode("windows").unnest("windows")
        rows, name = rows.filter(pl.col("window") == window), IN_WINDOW.get(name, name)
    elif place and name in rows.columns:
        rows = rows.with_columns(pl.col(name).list.get(int(place.rstrip("]")) - 1, null_on_oob=True))
    together = name in RATIOS and all(term in rows.columns and rows[term].count() for term in TERMS[name])
    fields, value = (TERMS[name], RATIOS[name]) if together else ((name,), pl.col(name).mean())
    if rows.is_empty() or any(field not in rows.columns for field in fields):
        return {}
    rows = rows.with_columns(pl.col(fields).cast(pl.Float64))
    whole = pl.all_horizontal(pl.col(fields).is_not_null().all())
    trials = rows.group_by("controller", "seed").agg(value=value, whole=whole).filter(pl.col("whole"))
    # Twelve digits, since means of equal numbers may differ in the last one.
    found = trials.select("controller", "seed", "value").iter_rows()
    return {(controller, seed): float(f"{value:.12g}") for controller, seed, value in found}


def unit_of(metric: str) -> str:
    """Returns the unit of a metric; empty if it is a plain number."""
    return next((unit for end, (unit, _, _) in UNITS.items() if metric.split("[")[0].endswith(end)), "")


def words(value: float, unit: str) -> str:
    """Returns a number with its unit for people."""
    label, size = next(((label, size) for name, label, size in UNITS.values() if name == unit), ("", 1))
    if unit == "s" and abs(value) >= 1:
        label, size = "s", 1
    scaled = value / size
    return f"{scaled:,.0f} {label}".strip() if abs(scaled) >= 100 else f"{scaled:.3g} {label}".strip()


# --- Comparisons


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison of values, as observed and after each shuffle."""

    #: Above 1 if it agrees, below -1 if it is contradicted: distance to the limit over the interval's extent on that
    #: side. NaN if values are missing. The first is the observed one.
    strength: Floats
    estimate: float
    low: float
    high: float
    effect: float
    unit: str
    quantity: str
    text: str
    margin: float | None = None
    nothing: bool = False  #: True if both sides are zero in every trial.
    count: int = 1  #: Number of comparisons that this one decides.


@dataclass(frozen=True)
class _Means:
    mean: Floats
    low: Floats
    high: Floats

    def __neg__(self) -> _Means:
        return _Means(-self.mean, -self.high, -self.low)

    def above(self, limit: float, *, scale: Floats, inclusive: bool = False) -> Floats:
        """Returns the strength of the statement that the mean is above the limit.

        A single trial has no interval. Its distance to the limit is set in relation to `scale`, which is at least as
        large, so that the weakest comparison is known though none is decided.
        """
        gap = self.mean - limit
        room = np.where(gap >= 0, self.mean - self.low, self.high - self.mean)
        room = np.where(np.isinf(room), 1.001 * scale + np.finfo(np.float64).tiny, room)
        with np.errstate(divide="ignore", invalid="ignore"):
            strength = np.where(gap == 0, 0.0, gap / room)
        return np.where((gap == 0) & (room == 0), math.inf, strength) if inclusive else strength

    def comparison(
        self,
        strength: Floats,
        effect: float,
        of: Values,
        text: str,
        *,
        margin: float | None = None,
        nothing: bool = False,
    ) -> Comparison:
        """Returns the comparison with the observed mean and interval."""
        mean, low, high = (float(values[0]) for values in (self.mean, self.low, self.high))
        text = f"{of.quantity}: {text}"
        return Comparison(strength, mean, low, high, effect, of.unit, of.quantity, text, margin, nothing)


def _mean(values: Floats) -> Floats:
    """Returns the means over the trials that have a value; NaN if none has."""
    there = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.where(there, values, 0).sum(axis=1) / there.sum(axis=1)
    return mean


def _means(one: Floats, other: Floats) -> tuple[_Means, float]:
    """Returns the mean differences with their 95 % intervals, and Cliff's delta of the observed values.

    The observed interval is that of `playrate_lab`. Those of the shuffles, which are many, are Student's.
    """
    difference = one - other
    there = np.isfinite(difference)
    count, mean = there.sum(axis=1), _mean(difference)
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = np.where(there, (difference - mean[:, None]) ** 2, 0).sum(axis=1)
        half = stdtrit(np.maximum(count - 1, 1), 0.975) * np.sqrt(squares / (count - 1) / count)
    half = np.where(count == 1, math.inf, half)
    means, delta = _Means(mean, mean - half, mean + half), math.nan
    if count[0]:
        left, right = (values[0][there[0]] for values in (one, other))
        # `paired` would draw bootstrap samples for ratios too, and minds few trials that differ by the same amount.
        both = paired(dict(enumerate(left)), dict(enumerate(right))) if count[0] < FEWEST_FOR_BOOTSTRAP else None
        found = both.difference if both else interval(left - right)
        assert found is not None
        delta = cliffs_delta(left, right)
        means.mean[0], means.low[0], means.high[0] = found.mean, found.low, found.high
    return means, delta


def _constant(value: Values | float, like: Values) -> Values:
    return value if isinstance(value, Values) else replace(like, name="", x=np.full_like(like.x, value))


def _compare(one: Values, other: Values | float, sign: int) -> Comparison:
    other = _constant(other, one)
    means, delta = _means(sign * one.x, sign * other.x)
    scale = np.abs(_mean(one.x)) + np.abs(_mean(other.x))
    nothing = bool(one.x.size and not one.x[0].any() and not other.x[0].any())
    return means.comparison(means.above(0, scale=scale), delta, one, f"{one} against {other}", nothing=nothing)


def above(one: Values, other: Values | float) -> Comparison:
    """The first is larger."""
    return _compare(one, other, 1)


def below(one: Values, other: Values | float) -> Comparison:
    """The first is smaller."""
    return _compare(one, other, -1)


def _margin(one: Values, other: Values, margin: float, text: str, *, both_sides: bool) -> Comparison:
    means, _ = _means(one.x, other.x)
    scale, difference = np.abs(means.mean) + margin, one.x[0] - other.x[0]
    strength = (-means).above(-margin, scale=scale, inclusive=True)
    if both_sides:
        strength = np.minimum(strength, means.above(-margin, scale=scale, inclusive=True))
        difference = np.abs(difference)
    there = difference[np.isfinite(difference)]
    effect = float(np.where(there <= margin, 1, -1).mean()) if there.size else math.nan
    return means.comparison(strength, effect, one, text, margin=margin)


def negligible(one: Values, *, at_most: float) -> Comparison:
    """The values are at most the margin."""
    text = f"{one}, at most {words(at_most, one.unit)}"
    return _margin(one, _constant(0, one), at_most, text, both_sides=False)


def equal(one: Values, other: Values | float, *, within: float) -> Comparison:
    """The values differ by the margin at most."""
    other = _constant(other, one)
    text = f"{one} against {other}, within {words(within, one.unit)}"
    return _margin(one, other, within, text, both_sides=True)


def similar(one: Values, other: Values, *, within: float, floor: float = 1e-9) -> Comparison:
    """The values differ by the margin at most, as a share of the second's mean, which counts as `floor` at least."""
    scale = np.maximum(np.abs(_mean(other.x)), floor)[:, None]
    first, second = (replace(values, unit="share", x=values.x / scale) for values in (one, other))
    text = f"{one} against {other}, within {words(within, 'share')}"
    return _margin(first, second, within, text, both_sides=True)


def all_of(*comparisons: Comparison, leave_out_nothing: bool = False) -> Comparison:
    """All comparisons hold: the weakest decides.

    Args:
        comparisons: At least one.
        leave_out_nothing: Leave out comparisons with nothing to compare, both sides being zero in every trial. If that
            is so in all, they stay.
    """
    kept = [one for one in comparisons if not (leave_out_nothing and one.nothing)] or list(comparisons)
    strengths = np.array([one.strength for one in kept])
    count = sum(one.count for one in kept)
    # The first NaN is the least.
    return replace(kept[int(strengths[:, 0].argmin())], strength=strengths.min(axis=0), count=count)


def majority(*comparisons: Comparison) -> Comparison:
    """More than half of the comparisons hold: the weakest of the strongest ones that make a majority decides."""
    strengths = np.array([one.strength for one in comparisons])
    place = len(comparisons) - 1 - len(comparisons) // 2
    deciding = comparisons[int(strengths[:, 0].argsort(kind="stable")[place])]
    missing = np.isnan(strengths).any(axis=0)
    strength = np.where(missing, math.nan, np.sort(strengths, axis=0)[place])
    return replace(deciding, strength=strength, count=sum(one.count for one in comparisons))


def least(values: Mapping[str, Values], *names: str) -> Comparison:
    """Each of the named controllers has less than each of the others."""
    others = [other for other in values if other not in names]
    return all_of(*(below(values[name], values[other]) for name in names for other in others))


def most(values: Mapping[str, Values], *names: str) -> Comparison:
    """Each of the named controllers has more than each of the others."""
    others = [other for other in values if other not in names]
    return all_of(*(above(values[name], values[other]) for name in names for other in others))


# --- Findings and rows


def finding(
    claim: str, comparison: Comparison, quotation: str = "", place: str = "", *, primary: bool = False
) -> Finding:
    """Decides a claim by a comparison; a primary with its chance level.

    Without a quotation or a place, a secondary has that of its row.
    """
    observed = float(comparison.strength[0])
    if math.isnan(observed):
        text = "rows or values that it needs are missing"
        return Finding(claim, quotation, place, None, None, None, None, comparison.unit, None, None, text)
    outcome = Outcome.AGREES if observed > 1 else Outcome.CONTRADICTED if observed < -1 else Outcome.NO_DIFFERENCE
    shuffled = comparison.strength[1:]
    return Finding(
        claim=claim,
        quotation=quotation,
        place=place,
        outcome=outcome,
        estimate=comparison.estimate,
        low=comparison.low if math.isfinite(comparison.low) else None,
        high=comparison.high if math.isfinite(comparison.high) else None,
        unit=comparison.unit,
        effect=comparison.effect,
        chance=float((shuffled > 1).mean()) if primary and shuffled.size else None,
        text=comparison.text + (f"; weakest of {comparison.count} comparisons" if comparison.count > 1 else ""),
        margin=comparison.margin,
        quantity=comparison.quantity,
    )


def magnitude(
    what: str, printed: float, measured: Values, quotation: str, *, place: str = "", within: float | None = None
) -> Magnitude:
    """Sets a printed number, in the unit of ours, against ours.

    `within` is the largest relative difference that counts as near; None if it is not judged.
    """
    found = interval(measured.x[0][np.isfinite(measured.x[0])])
    text = "not measured" if found is None else words(found.mean, measured.unit)
    if found is not None and math.isfinite(found.low):
        text += f" ({words(found.low, measured.unit)} to {words(found.high, measured.unit)})"
    near = None if found is None or within is None else abs(found.mean - printed) <= within * abs(printed)
    return Magnitude(what, quotation, place, words(printed, measured.unit), text, near)


#: What the function of a row yields: the comparison of its primary, then secondaries and magnitudes.
Parts: TypeAlias = "Iterator[Comparison | Finding | Magnitude]"
#: Test beds of the papers.
TEST_BEDS = {"P12": "ns2", "P13": "kyutech", "P14": "kyutech", "P15": "kyutech", "P21": "mininet"}


def row(
    name: str, *conditions: str, controllers: Sequence[str], shuffle: Shuffled = "controllers"
) -> Callable[[Callable[[Trials], Parts]], Row]:
    """Makes a row of a function whose docstring is the claim.

    The docstring's first paragraph is the primary in our words. Its second is the place in the paper and the paper's
    words, as in `Section V.A, figure 4: "Cubic is the TCP variant …".`. What follows explains the reading.

    Args:
        name: Id of the row.
        conditions: Conditions that it reads; the first is the default one.
        controllers: Specs that it compares.
        shuffle: Labels that are shuffled for the chance level.
    """

    def of(function: Callable[[Trials], Parts]) -> Row:
        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        says, source = (paragraph.replace("\n", " ").rstrip('".') for paragraph in paragraphs[:2])
        place, _, quotation = source.partition(': "')

        def judge(results: Results) -> Judgement:
            first, *others = function(Trials(results, conditions, controllers, shuffle=shuffle))
            assert isinstance(first, Comparison)
            findings = [finding(says, first, primary=True), *(one for one in others if isinstance(one, Finding))]
            primary, *secondary = (
                replace(one, quotation=one.quotation or quotation, place=one.place or place) for one in findings
            )
            magnitudes = (one for one in others if isinstance(one, Magnitude))
            return Judgement(primary, tuple(secondary), tuple(replace(m, place=m.place or place) for m in magnitudes))

        empty = Trials(pl.DataFrame(), conditions, controllers, shuffles=0)
        list(function(empty))
        scenarios = tuple(dict.fromkeys(condition.partition("/")[0] for condition in conditions))
        paper, metrics = name.partition("-")[0], tuple(sorted(empty.metrics))
        return Row(name, paper, TEST_BEDS[paper], says, scenarios, tuple(controllers), metrics, judge)

    return of
