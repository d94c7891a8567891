"""Made-up rows whose outcomes are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Values by condition and controller.
Arms = dict[str, dict[str, float]]

TRIALS = 6
#: Constants of the papers' film.
FRAMES, PACKETS, MINUTES = 18_720, 282_000, 10.4


def arms(conditions: Iterable[str], controllers: Iterable[str], value: float = 0) -> Arms:
    """The same value everywhere."""
    names = tuple(controllers)
    return {condition: dict.fromkeys(names, value) for condition in conditions}


def world(metrics: Mapping[str, Arms], *, jitter: float = 0.002, trials: int = TRIALS) -> pl.DataFrame:
    """Rows of viewers, bulk flows and ideal senders.

    `bulk:` precedes the name of a metric of bulk flows, `@50s..150s` follows that of a window, and `[4]` makes it the
    fourth of a list. Trials differ by the share `jitter`, with the opposite sign for every other controller.
    """
    rows = []
    places = {(at, one): None for of in metrics.values() for at, values in of.items() for one in values}
    for index, (condition, controller) in enumerate(places):
        scenario, _, case = condition.partition("/")
        for seed in range(1, trials + 1):
            factor = 1 + jitter * (-1) ** (seed + index) * (1 + seed % 3) / 3
            base = {"scenario": scenario, "case": case, "seed": seed, "outcome": "complete"}
            for role in ("viewer", "bulk"):
                own = {
                    name.removeprefix("bulk:"): of[condition][controller] * factor
                    for name, of in metrics.items()
                    if name.startswith("bulk:") == (role == "bulk") and controller in of.get(condition, {})
                }
                if own:
                    rows.append({**base, "controller": controller, "role": role, **_fields(own)})
            rows.append({**base, "controller": "ideal", "role": "viewer", **_fields({"frames_discarded": 0.0})})
    return pl.DataFrame(rows, infer_schema_length=None).unique(maintain_order=True)


def _fields(values: Mapping[str, float]) -> dict[str, Any]:
    fields: dict[str, Any] = {"frames": FRAMES, "sent_packets": PACKETS, "underflows_per_minute": 0.0, "windows": []}
    windows: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        metric, _, window = name.partition("@")
        if window:
            renamed = {"throughput_bps": "goodput_bps"}.get(metric, metric)
            windows.setdefault(window, {"sent_packets": PACKETS, "lost_packets": 0.0, "goodput_bps": 0.0})[renamed] = (
                value
            )
        elif "[" in name:
            metric, _, place = name.partition("[")
            fields[metric] = [0.0] * (int(place.rstrip("]")) - 1) + [value]
        else:
            fields[name] = value
    if "underflow_events" in values:
        fields["underflows_per_minute"] = values["underflow_events"] / MINUTES
    return {**fields, "windows": [{"window": window, **of} for window, of in windows.items()]}
