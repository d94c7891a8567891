"""Numbers equal those of the Rust program that compared controllers before this package did, to 1e-9.

The files in `before/` are rows of `lab` 0.1.0, reduced to the fields that are read, and (`-old`) the numbers that its
statistics, `lab matrix` and `lab fairness` computed from these rows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from playrate_lab import compare, fairness, scores

BEFORE = Path(__file__).parent / "before"
#: Largest distance of ends of bootstrap intervals, which are drawn at random, as a share of the interval.
BOOTSTRAP_TOLERANCE = 0.05


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (BEFORE / name).read_text(encoding="utf-8").splitlines()]


def close(value: float | None) -> object:
    return None if value is None else pytest.approx(value, rel=1e-9, abs=1e-12)


def check(found: dict[str, Any], old: dict[str, Any]) -> None:
    """Check the columns of a comparison; `old` has null where there is no number."""
    for name in ("method", "difference_method", "effect"):
        assert found[name] == old[name]
    assert found["cliffs_delta"] == close(old["cliffs_delta"])
    for mean, method in (("mean", "method"), ("difference", "difference_method"), ("ratio", "method")):
        low, high = (f"{mean}_low", f"{mean}_high") if mean != "mean" else ("low", "high")
        for name in (mean, low, high):
            if old[name] is None:
                assert found[name] is None, name
            elif name == mean or old[method] != "bootstrap":
                assert found[name] == close(old[name]), name
            else:
                assert abs(found[name] - old[name]) <= BOOTSTRAP_TOLERANCE * (old[high] - old[low]), name


def test_comparisons_are_those_of_the_program_before() -> None:
    rows = pl.DataFrame(lines("compare.jsonl"), infer_schema_length=None)
    old = lines("compare-old.jsonl")
    assert {one["method"] for one in old} == {"single", "constant", "student-t", "bootstrap"}
    for metric in ("frames_discarded", "startup_delay_s", "impaired_share"):
        table = compare.compare(rows, metric, "cubic").to_dicts()
        found = {(row["scenario"], row["controller"]): row for row in table}
        for one in old:
            if one["metric"] == metric:
                check(found[one["scenario"], one["controller"]], one)


def test_samples_are_compared_as_by_the_program_before() -> None:
    for old in lines("samples-old.jsonl"):
        one, other = (dict(enumerate(old[name])) for name in ("one", "other"))
        own, both = compare.interval(old["one"]), compare.paired(one, other)
        assert own is not None
        assert both is not None
        difference = both.difference
        found = {
            **{"mean": own.mean, "low": own.low, "high": own.high, "method": own.method},
            **{"difference": difference.mean, "difference_low": difference.low, "difference_high": difference.high},
            **{"ratio": both.ratio, "ratio_low": both.ratio_low, "ratio_high": both.ratio_high},
            **{"difference_method": difference.method, "cliffs_delta": both.delta, "effect": both.effect},
        }
        check(found, old)


def test_scores_ranks_and_regret_are_those_of_lab_matrix() -> None:
    old = json.loads((BEFORE / "scores-old.json").read_text(encoding="utf-8"))
    rows = lines("scores.jsonl")
    cells = scores.cells(rows)
    regrets = {one.controller: one for one in scores.regrets(cells)}
    names = {"bitrate_bps": "mean_bitrate_bps", "loss": "loss_ratio", "own_loss": "own_loss_ratio"}
    for standing in old["standings"]:
        assert regrets[standing["controller"]].mean_rank == close(standing["mean_rank"])
        for place in standing["places"]:
            cell = cells[place["scenario"], place["case"]][standing["controller"]]
            for name in ("rank", "score", "bitrate_bps", "loss", "own_loss", "queueing_s", "others_bps"):
                assert getattr(cell, name) == close(place[names.get(name, name)]), name
    for one in old["regret"]:
        found = regrets[one["controller"]]
        for name in set(one) - {"controller", "worst", "others_of_cubic_worst"}:
            assert getattr(found, name) == close(one[name]), name
        if one["worst"] is not None and one["worst"]["value"] > 0:
            assert found.worst == (close(one["worst"]["value"]), one["worst"]["path"])
    for kind, places in scores.kinds(rows).items():
        if "loss" not in kind and kind != "several viewers":
            assert {scenario for scenario, _ in places} == {name for name, of in old["classes"].items() if kind in of}


def test_pairs_are_those_of_lab_fairness() -> None:
    found = fairness.pairs(lines("fairness.jsonl")).to_dicts()
    pairs = {(pair["demand"], pair["controller"], pair["download"]): pair for pair in found}
    old = json.loads((BEFORE / "fairness-old.json").read_text(encoding="utf-8"))["pairs"]
    assert len(pairs) == 2 * len(old)
    for one in old:
        for demand in ("needy", "calm"):
            pair = pairs[demand, one["controller"], one["beside"]]
            for name in ("viewer_share", "download_share", "jain", "score"):
                assert pair[name] == close(one[demand][name]), name
            # Rates were written in whole bits per second.
            assert [round(pair["viewer_bps"]), round(pair["download_bps"])] == [
                one[demand]["viewer_bps"],
                one[demand]["download_bps"],
            ]
        assert pairs["needy", one["controller"], one["beside"]]["harm"] == close(one["harm"])
