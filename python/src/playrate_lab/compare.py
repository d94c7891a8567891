"""Compares controllers seed by seed: means, 95 % confidence intervals, ratios, effect sizes.

All controllers run with the same seeds, so each seed gives one difference, and the interval is that of the mean of
these differences. `docs/statistics.md` explains the methods.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl
from scipy.special import ndtr, stdtrit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

Method = Literal["single", "constant", "student-t", "bootstrap"]
#: Values of a controller by seed.
Sample: TypeAlias = "Mapping[int, float]"

#: Share of intervals that contain the true mean.
CONFIDENCE = 0.95
#: Fewest trials for a bootstrap interval; with fewer it is too narrow.
FEWEST_FOR_BOOTSTRAP = 8
#: Number of bootstrap draws; ends of intervals are then stable to about a fiftieth of the interval.
RESAMPLES = 10_000
#: Fixed, so that equal results have equal intervals.
_SEED = 0x706C_6179
#: Metrics whose value for several flows is a ratio of sums.
RATIOS = {
    "discard_share": pl.col("frames_discarded").sum() / pl.col("frames").sum(),
    "loss_ratio": pl.col("lost_packets").sum() / pl.col("sent_packets").sum(),
    "underflows_per_minute": 60
    * pl.col("underflow_events").sum()
    / (pl.col("ended_s") - pl.col("startup_delay_s")).sum(),
}
#: Sizes of Cliff's delta and the magnitudes below which they apply (Romano et al. 2006).
_EFFECTS = (("negligible", 0.147), ("small", 0.33), ("medium", 0.474))


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % confidence interval, in the unit of the values."""

    count: int  #: Number of trials.
    mean: float
    low: float  #: Minus infinity for a single trial.
    high: float  #: Infinity for a single trial.
    method: Method  #: `single` trial, `constant` (all trials are equal), `student-t` (2 to 7 trials), or `bootstrap`.


@dataclass(frozen=True)
class Paired:
    """The comparison of one controller with another over the seeds that both have."""

    difference: Interval  #: The first less the second, seed by seed.
    #: Mean of the first over that of the second; None unless all values of the second are above zero.
    ratio: float | None
    ratio_low: float | None  #: None below 8 trials, unless all pairs are equal.
    ratio_high: float | None
    delta: float  #: Cliff's delta of the first against the second, from -1 to 1.

    @property
    def effect(self) -> str:
        """Size of the delta: negligible, small, medium or large."""
        return effect(self.delta)


def interval(values: Sequence[float] | Floats) -> Interval | None:
    """Returns the 95 % confidence interval of the mean of `values`; None if there are none, or one is not finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not np.isfinite(array).all():
        return None
    count, mean = array.size, float(array.mean())
    if count == 1:
        return Interval(count, mean, -math.inf, math.inf, "single")
    if (array == array[0]).all():
        # The mean of equal numbers may differ from them in its last digit.
        value = float(array[0])
        return Interval(count, value, value, value, "constant")
    if count < FEWEST_FOR_BOOTSTRAP:
        half = _student(count - 1) * float(array.std(ddof=1)) / math.sqrt(count)
        return Interval(count, mean, mean - half, mean + half, "student-t")
    return Interval(count, mean, *_bootstrap(count, lambda drawn: array[drawn].mean(axis=1)), "bootstrap")


def paired(one: Sample, other: Sample) -> Paired | None:
    """Compares the first with the second; None if they have no seed in common, or a value is not finite."""
    seeds = [seed for seed in one if seed in other]
    ones, others = (np.array([of[seed] for seed in seeds], dtype=np.float64) for of in (one, other))
    difference, left, right = interval(ones - others), interval(ones), interval(others)
    if difference is None or left is None or right is None:
        return None
    constant = difference.method == "constant" and left.method != "constant"
    if constant and len(seeds) < FEWEST_FOR_BOOTSTRAP:
        # A few varying numbers may differ by the same amount by chance, so their own variation counts.
        difference = _unpaired(ones, others)
    ratio, ratio_low, ratio_high = _ratio(ones, others)
    return Paired(difference, ratio, ratio_low, ratio_high, cliffs_delta(ones, others))


def cliffs_delta(one: Sequence[float] | Floats, other: Sequence[float] | Floats) -> float:
    """Returns the share of pairs (one value of each) with a larger first value, less the share with a smaller one.

    Raises:
        ValueError: if one of them is empty.
    """
    if len(one) == 0 or len(other) == 0:
        raise ValueError("Cliff's delta needs at least one value of each")
    pairs = np.sign(np.subtract.outer(np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)))
    return float(pairs.mean())


def effect(delta: float) -> str:
    """Returns the size of a Cliff's delta of either sign: negligible, small, medium or large."""
    return next((name for name, below in _EFFECTS if abs(delta) < below), "large")


def per_seed(
    rows: pl.DataFrame, metric: str, *, by: Sequence[str] = ("scenario", "case"), role: str = "viewer"
) -> pl.DataFrame:
    """Returns the metric's value for each trial: columns `by`, `controller`, `seed` and `value`.

    The value is the mean over the flows of `role`. Ratios such as `loss_ratio` are those of the sums over the flows. A
    trial is left out if one of its flows failed or lacks the metric.

    Raises:
        ValueError: if a column is missing, or a group has rows of several versions or settings of a scenario.
    """
    groups = [*by, "controller"]
    value = RATIOS.get(metric, pl.col(metric).cast(pl.Float64).mean())
    needed = dict.fromkeys((*groups, "seed", metric, *value.meta.root_names()))
    if missing := [name for name in needed if name not in rows.columns]:
        near = [f", near {name!r}" for wrong in missing for name in get_close_matches(wrong, rows.columns, 1)]
        raise ValueError(f"the rows have no column {', '.join(map(repr, missing))}{''.join(near)}")
    flows = rows.filter(pl.col("role") == role) if "role" in rows.columns else rows
    if "scenario_hash" in rows.columns:
        versions = flows.group_by(by, maintain_order=True).agg(pl.col("scenario_hash").n_unique())
        mixed = versions.filter(pl.col("scenario_hash") > 1).select(by)
        if mixed.height:
            where = " ".join(str(value) for value in mixed.row(0) if value != "")
            raise ValueError(f"{where} has rows of several versions or settings; add the keys that vary to `by`")
    trials = flows.group_by([*groups, "seed"], maintain_order=True).agg(
        value=value,
        whole=pl.col(metric).is_not_null().all(),
        failed=(pl.col("outcome") == "failed").any() if "outcome" in rows.columns else pl.lit(value=False),
    )
    return trials.filter(pl.col("whole") & ~pl.col("failed")).drop("whole", "failed")


def compare(
    rows: pl.DataFrame,
    metric: str,
    baseline: str | None,
    *,
    by: Sequence[str] = ("scenario", "case"),
    role: str = "viewer",
) -> pl.DataFrame:
    """Compares each controller with the baseline, in each group of runs: one row for each group and controller.

    Columns after those of `by` and `controller`, in the unit of the metric unless they are shares:

    - `trials`, `mean`, `low`, `high`, `method`: mean over the trials, ends of its 95 % interval and how they were
      computed. The ends are null for a single trial.
    - `difference`, `difference_low`, `difference_high`, `difference_method`: the controller less the baseline, over
      the seeds that both have. Null for the baseline itself, and where the baseline has no trial.
    - `ratio`, `ratio_low`, `ratio_high`: the controller's mean over the baseline's. The ratio is null if a value of the
      baseline is not above zero; its ends are also null below 8 trials.
    - `cliffs_delta`, `effect`: effect size from -1 to 1, and its name.

    Args:
        rows: Rows of `read`, `run` or `sweep`.
        metric: Column to compare, such as `"impaired_share"`.
        baseline: Canonical spec of the controller to compare with, as in the column `controller`; or `"ideal"`. With
            None, only means are computed.
        by: Columns that make a group. Add the keys of a sweep.
        role: `"viewer"`, or `"bulk"` for downloads.

    Raises:
        ValueError: if a column or the baseline is missing, or a group has several versions of a scenario.
    """
    trials = per_seed(rows, metric, by=by, role=role)
    groups: dict[tuple[Any, ...], dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for *place, controller, seed, value in trials.iter_rows():
        groups[tuple(place)][controller][seed] = value
    known = trials.get_column("controller").unique(maintain_order=True).to_list()
    if baseline is not None and baseline not in known:
        raise ValueError(f"no trial of the baseline {baseline!r} has {metric!r}; controllers: {', '.join(known)}")
    found = []
    for group, samples in groups.items():
        _spread_ideal(samples)
        for controller, sample in samples.items():
            other = samples[baseline] if baseline in samples and controller != baseline else {}
            names = dict(zip(by, group, strict=True))
            found.append({**names, "controller": controller, **_columns(sample, other)})
    return pl.DataFrame(found, schema={**{name: rows.schema[name] for name in (*by, "controller")}, **_SCHEMA})


#: Columns that a comparison has after those of the group.
_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "trials": pl.Int64,
    **dict.fromkeys(("mean", "low", "high"), pl.Float64),
    "method": pl.String,
    **dict.fromkeys(("difference", "difference_low", "difference_high"), pl.Float64),
    "difference_method": pl.String,
    **dict.fromkeys(("ratio", "ratio_low", "ratio_high", "cliffs_delta"), pl.Float64),
    "effect": pl.String,
}


def _columns(sample: Sample, baseline: Sample) -> dict[str, Any]:
    """Returns the columns of one controller; those of the comparison are null if the baseline is empty."""
    own = interval(list(sample.values()))
    columns: dict[str, Any] = dict.fromkeys(_SCHEMA)
    columns["trials"] = len(sample)
    if own is not None:
        columns |= {"mean": own.mean, "low": _finite(own.low), "high": _finite(own.high), "method": own.method}
    if (both := paired(sample, baseline)) is not None:
        difference = both.difference
        columns |= {
            "difference": difference.mean,
            "difference_low": _finite(difference.low),
            "difference_high": _finite(difference.high),
            "difference_method": difference.method,
            "ratio": both.ratio,
            "ratio_low": both.ratio_low,
            "ratio_high": both.ratio_high,
            "cliffs_delta": both.delta,
            "effect": both.effect,
        }
    return columns


def _spread_ideal(samples: dict[str, dict[int, float]]) -> None:
    """Gives a single trial of `ideal` to all seeds: trials that do not vary share one."""
    ideal = samples.get("ideal", {})
    if len(ideal) == 1:
        (value,) = ideal.values()
        samples["ideal"] = dict.fromkeys((seed for sample in samples.values() for seed in sample), value)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _student(degrees: int) -> float:
    """Returns half the width of an interval in standard errors."""
    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))


def _unpaired(ones: Floats, others: Floats) -> Interval:
    """Returns Student's interval of the difference of two means, with the fewest degrees of freedom (Welch)."""
    count, mean = ones.size, float(ones.mean() - others.mean())
    half = _student(count - 1) * math.sqrt((ones.var(ddof=1) + others.var(ddof=1)) / count)
    return Interval(count, mean, mean - half, mean + half, "student-t")


def _ratio(ones: Floats, others: Floats) -> tuple[float | None, float | None, float | None]:
    """Returns the ratio of the means and the ends of its interval."""
    if (others <= 0).any():
        return None, None, None
    value = float(ones.sum() / others.sum())
    count = ones.size
    if count > 1 and (ones == ones[0]).all() and (others == others[0]).all():
        return value, value, value
    if count < FEWEST_FOR_BOOTSTRAP:
        return value, None, None
    return value, *_bootstrap(count, lambda drawn: ones[drawn].sum(axis=1) / others[drawn].sum(axis=1))


def _bootstrap(count: int, statistic: Callable[[NDArray[np.int64]], Floats]) -> tuple[float, float]:
    """Returns the ends of the interval of a statistic over draws of `count` trials with replacement.

    Plain percentiles make the interval too narrow by the square root of (n - 1) / n and assume a normal distribution
    instead of Student's, so the interval reaches further out: expanded percentiles (Hesterberg 2015, "What Teachers
    Should Know About the Bootstrap", The American Statistician 69).
    """
    drawn = np.random.default_rng([_SEED, count]).integers(0, count, (RESAMPLES, count))
    tail = float(ndtr(-_student(count - 1) * math.sqrt(count / (count - 1))))
    low, high = np.quantile(statistic(drawn), [tail, 1 - tail])
    return float(low), float(high)
