"""Results as data frames."""

from __future__ import annotations

import io
import json
import os
from typing import TYPE_CHECKING, Any

import polars as pl

from playrate_lab._command import StrPath, call, find_lab

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def read(directory: StrPath, *, lab: StrPath | None = None) -> pl.DataFrame:
    """Returns the results of `lab run` in `directory`: a row for each flow of each run.

    Columns are the fields and the metrics of `docs/runs.md`, such as `controller`, `trial`, `seed`, `role`,
    `impaired_share` (from 0 to 1), `startup_delay_s` (seconds), `throughput_bps` (bit/s) and `received_bytes`. A
    value is null where the row has none.

    Args:
        directory: Directory that `lab run`, `lab merge` or `lab matrix` wrote.
        lab: Path of the program.

    Raises:
        BadInputError: if `directory` has no results.
    """
    text = call(find_lab(lab), ["rows", os.fspath(directory)])
    return pl.read_ndjson(io.StringIO(text), infer_schema_length=None)


def claims(
    directory: StrPath,
    *,
    only: str | Sequence[str] = (),
    scenarios: StrPath | Sequence[StrPath] = (),
    lab: StrPath | None = None,
) -> pl.DataFrame:
    """Returns the verdicts of `lab claims` on the results in `directory`: a row for each check of each claim.

    `claim_outcome` is the verdict on the whole claim and `outcome` that on the check: `holds`, `fails`, `undecided` or
    `not run`. `left`, `right` and `difference` (means, each with `_low` and `_high`, the ends of its 95 % confidence
    interval) have the unit of the check's metric; an infinite end is null. `docs/claims.md` explains the verdicts.

    Args:
        directory: Directory with the results of `lab run`.
        only: Beginnings of ids, such as `"P13-4"`; all claims if there is none.
        scenarios: Scenario files whose claims are decided beside those of the built-in scenarios.
        lab: Path of the program.

    Raises:
        BadInputError: if `directory` has no results, or no claim begins with one of `only`.
    """
    arguments = ["claims", os.fspath(directory), "--json"]
    for beginning in [only] if isinstance(only, str) else only:
        arguments += ["--only", beginning]
    for file in [scenarios] if isinstance(scenarios, (str, os.PathLike)) else scenarios:
        arguments += ["--scenario", os.fspath(file)]
    report = json.loads(call(find_lab(lab), arguments))
    of_rows = [claim for row in report["rows"] for claim in row["claims"] + row["beside"]]
    return checks([({}, claim) for claim in of_rows + report["others"]])


def checks(judged: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> pl.DataFrame:
    """Returns a row for each check of each claim, after the columns that stand with the claim."""
    rows = [row for beside, claim in judged for row in _of_claim(beside, claim)]
    beside = {name: None for columns, _ in judged for name in columns}
    return pl.DataFrame(rows, schema={**beside, **_SCHEMA}, infer_schema_length=None, orient="row")


_INTERVALS = ("left", "right", "difference")
_ENDS = {"": "mean", "_low": "low", "_high": "high"}

#: Columns that every data frame of checks has, even one without a row.
_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "scenario": pl.String,
    "claim": pl.String,
    "says": pl.String,
    "decides": pl.Boolean,
    "claim_outcome": pl.String,
    "check": pl.String,
    "outcome": pl.String,
    "reason": pl.String,
    "trials": pl.Int64,
    **{name + end: pl.Float64 for name in _INTERVALS for end in _ENDS},
    "cliffs_delta": pl.Float64,
}


def _of_claim(beside: Mapping[str, Any], claim: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for check in claim["checks"]:
        numbers = {name + end: (check[name] or {}).get(field) for name in _INTERVALS for end, field in _ENDS.items()}
        yield {
            **beside,
            "scenario": claim["scenario"],
            "claim": claim["id"],
            "says": claim["says"],
            "decides": claim["decides"],
            "claim_outcome": claim["outcome"],
            "check": check["check"],
            "outcome": check["outcome"],
            "reason": check["reason"],
            "trials": check["trials"],
            **numbers,
            "cliffs_delta": check["cliffs_delta"],
        }
