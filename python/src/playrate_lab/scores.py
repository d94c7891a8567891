"""Scores, ranks and regret of controllers, computed from the rows that `lab run` writes.

`docs/matrix.md` defines them. `regrets(cells(rows("results")))` returns the regret of each controller.
`python -m playrate_lab.scores DIR...` prints the table, or JSON with `--json`.
"""

from __future__ import annotations

import argparse
import bisect
import json
import math
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from playrate_lab._command import exit_on_error
from playrate_lab._frames import stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from playrate_lab._command import StrPath
    from playrate_lab._frames import Row

    Rows = Iterable[Row] | pl.DataFrame

#: Steps of scores, bitrates (share of the best one) and losses; smaller differences do not count.
SCORE_STEP, BITRATE_STEP, LOSS_STEP = 0.001, 0.01, 0.0001
#: Controllers with which queueing and the throughput of others are compared.
SHORT_QUEUES, USUAL = "vegas", "cubic"

Place: TypeAlias = "tuple[str, str]"  #: Scenario and case.
Cells: TypeAlias = "Mapping[Place, Mapping[str, Cell]]"


@dataclass
class Cell:
    """One controller in one scenario, or one case of it: over all its trials and viewers."""

    score: float  #: Impaired share of the title, 0 to 1; controllers are ranked by it.
    bitrate_bps: float | None  #: Mean bitrate, if the players choose among representations.
    loss: float  #: Share of packets declared lost.
    own_loss: float  #: Share of packets that the path loses at random.
    queueing_s: float | None  #: Mean queueing delay; with downloads the mean RTT less propagation.
    others_bps: float | None  #: Mean throughput of each download that shares the path.
    fits: bool  #: True if the title needs at most 0.9 of an ideal sender's throughput.
    rank: float = 0.0  #: Rank among all controllers there, from 1; ties share the mean of theirs.


@dataclass
class Regret:
    """Results of a controller over the places where the title fits and every controller has a result."""

    controller: str
    mean_rank: float  #: Over all its places; cases of a scenario count as one.
    paths: int  #: Number of places that count.
    paths_left_out: int  #: Number of places where a controller has no result.
    mean: float  #: Score less the oracle's, which is the best of all controllers there.
    worst: tuple[float, str]  #: The largest, and its place.
    first_share: float  #: Share of the places on which no score is better by more than 0.1 %.
    bitrate_of_best: float | None  #: Mean bitrate over the oracle's, over ladders.
    lost_beyond_own: float  #: Mean share of packets lost less what the path loses at random.
    lost_beyond_own_unimpaired: float | None  #: The same where the score is 0.
    queueing_s: float | None  #: Mean queueing delay.
    queueing_of_vegas: float | None  #: Sum of queueing delays over that of `vegas`.
    others_of_cubic: float | None  #: Mean throughput of downloads over that with a `cubic` viewer.
    others_of_cubic_worst: tuple[float, str] | None  #: The smallest, and its place.


def rows(*directories: StrPath) -> list[Row]:
    """Returns the rows that `lab run` wrote into the directories, without those of `ideal`."""
    return [row for row in stored(*directories) if row["controller"] != "ideal"]


def score(row: Row) -> float | None:
    """Returns the score of a viewer's row; None for a download, or if the row lacks a required field."""
    if row.get("role", "viewer") != "viewer":
        return None
    if row["outcome"] == "failed":
        return 1.0
    if row.get("waiting_share") is not None:
        return float(row["waiting_share"] + row["skipping_share"]) / 2
    return _impaired_share(row)


def _impaired_share(row: Row) -> float | None:
    if row["frames_shown"] == 0 or row.get("title_duration_s") is None:
        return 1.0 if row["frames_shown"] == 0 else None
    # Frames are displayed for whole nanoseconds.
    frame_ns = round(row["title_duration_s"] * 1e9) // max(row["frames"], 1)
    lost_ns = frame_ns * (row["frames_discarded"] + row["frames_missing"])
    impaired_ns = max(round(row["frozen_s"] * 1e9), lost_ns)
    return float(impaired_ns / (impaired_ns + frame_ns * row["frames_shown"])) if frame_ns else 1.0


def cells(rows: Rows) -> dict[Place, dict[str, Cell]]:
    """Returns the cell of each controller in each scenario and case, with ranks; a controller without a score has none.

    Args:
        rows: Rows from the function `rows`, or from `playrate_lab.read`.

    Raises:
        ValueError: if rows are of two versions of a scenario, or of a program that did not write the required fields.
    """
    all_cells = {}
    for place, flows in by_place(rows).items():
        controllers: dict[str, list[Row]] = defaultdict(list)
        for row in flows:
            controllers[row["controller"]].append(row)
        measured = {controller: _measure(of, place) for controller, of in controllers.items()}
        all_cells[place] = {controller: cell for controller, cell in measured.items() if cell is not None}
        _rank(list(all_cells[place].values()))
    return all_cells


def by_place(rows: Rows) -> dict[Place, list[Row]]:
    """Returns the rows of each scenario and case, without those of `ideal`.

    Raises:
        ValueError: if rows are of two versions of a scenario.
    """
    groups: dict[Place, list[Row]] = defaultdict(list)
    for row in rows.iter_rows(named=True) if isinstance(rows, pl.DataFrame) else rows:
        of = groups[row["scenario"], row.get("case", "")]
        if of and of[0]["scenario_hash"] != row["scenario_hash"]:
            name = _name((row["scenario"], row.get("case", "")))
            raise ValueError(f"rows of two versions of scenario {name}; pass the results of one")
        of.append(row)
    without_ideal = {place: [row for row in of if row["controller"] != "ideal"] for place, of in groups.items()}
    return {place: of for place, of in without_ideal.items() if of}


def kinds(rows: Rows) -> dict[str, list[Place]]:
    """Returns the places of each kind of path. The measurements in its rows decide which kinds a place belongs to.

    Losses are those of the path itself, queue management and policers count where they dropped a packet.
    """
    found: dict[str, list[Place]] = {kind: [] for kind in _KINDS}
    for place, flows in by_place(rows).items():
        viewers = [row for row in flows if row.get("role", "viewer") == "viewer"]
        rtt = _mean(row.get("path_rtt_s") for row in viewers) or 0.0
        loss = _mean(_own_loss(row) for row in viewers) or 0.0
        of = {
            _KINDS[bisect.bisect_right((0.03, 0.12), rtt)],
            _KINDS[3 + bisect.bisect_right((1e-9, 0.001, 0.01), loss)],
            "competitors" if len(viewers) < len(flows) else "alone",
            "ladder" if any(row.get("segments") is not None for row in viewers) else "one rate",
            "several viewers" if any(row["viewer"] for row in viewers) else "",
            "CoDel" if any(row.get("aqm_drops") for row in viewers) else "",
            "policer" if any(row.get("policer_drops") for row in viewers) else "",
        }
        for kind in of - {""}:
            found[kind].append(place)
    return {kind: places for kind, places in found.items() if places}


_KINDS = (
    *("RTT < 30 ms", "RTT < 120 ms", "RTT ≥ 120 ms"),
    *("no loss", "loss < 0.1 %", "loss < 1 %", "loss ≥ 1 %"),
    *("policer", "CoDel", "alone", "competitors", "one rate", "ladder", "several viewers"),
)


def _measure(rows: Sequence[Row], place: Place) -> Cell | None:
    viewers = [row for row in rows if row.get("role", "viewer") == "viewer"]
    downloads = [row for row in rows if row.get("role") == "bulk"]
    values = [score(row) for row in viewers]
    if not viewers or None in values:
        return None
    if any(row.get("fits") is None for row in viewers) or any(row.get("compared_s") is None for row in downloads):
        raise ValueError(f"rows of scenario {_name(place)} lack `fits` or `compared_s`; run it again")
    sent = sum(row.get("sent_packets") or 0 for row in viewers)
    complete = all(row.get("sent_packets") is not None for row in viewers)
    compared_s = sum(row["compared_s"] for row in downloads)
    adaptive = any(row.get("segments") is not None for row in viewers)
    bitrates = [row.get("mean_bitrate_bps") for row in viewers]
    return Cell(
        score=_mean(value for value in values if value is not None) or 0.0,
        bitrate_bps=_mean(bitrates) if adaptive and None not in bitrates else None,
        loss=sum(row["lost_packets"] for row in viewers) / sent if sent and complete else 0.0,
        own_loss=_mean(_own_loss(row) for row in viewers) or 0.0,
        queueing_s=_mean(_queueing(row, shared=bool(downloads)) for row in viewers),
        others_bps=sum(row["compared_bytes"] for row in downloads) * 8 / compared_s if compared_s else None,
        fits=viewers[0]["fits"],
    )


def _own_loss(row: Row) -> float | None:
    if row.get("link_packets") is None:
        return None
    lost = row["random_losses"] + row["retry_losses"]
    left = lost + row["link_packets"]
    return lost / left if left else None


def _queueing(row: Row, *, shared: bool) -> float | None:
    measured = row.get("rtt_mean_s" if shared else "mean_queue_delay_s")
    return max(measured - row["path_rtt_s"], 0.0) if shared and measured is not None else measured


def _rank(cells: Sequence[Cell]) -> None:
    step = max(max((cell.bitrate_bps or 0.0 for cell in cells), default=0.0) * BITRATE_STEP, 1.0)

    def key(cell: Cell) -> tuple[int, int, int]:
        return (_steps(cell.score, SCORE_STEP), -_steps(cell.bitrate_bps or 0.0, step), _steps(cell.loss, LOSS_STEP))

    for cell in cells:
        better = sum(key(other) < key(cell) for other in cells)
        cell.rank = better + (sum(key(other) == key(cell) for other in cells) + 1) / 2


def regrets(cells: Cells) -> list[Regret]:
    """Returns the regret of each controller, least first."""
    controllers = list(dict.fromkeys(controller for at in cells.values() for controller in at))
    places, left_out = compared(cells)
    found = [_regret(controller, cells, places, left_out) for controller in controllers] if places else []
    return sorted(found, key=lambda regret: regret.mean)


def compared(cells: Cells) -> tuple[list[Place], int]:
    """Returns the places where the title fits and every controller has a result, and how many lack a result.

    All places count if the title fits nowhere.
    """
    controllers = {controller for at in cells.values() for controller in at}
    fitting = [place for place, at in cells.items() if any(cell.fits for cell in at.values())] or list(cells)
    places = [place for place in fitting if controllers <= cells[place].keys()]
    return places, len(fitting) - len(places)


def excess(at: Mapping[str, Cell], controller: str) -> float:
    """Returns the controller's score less the best one there."""
    return at[controller].score - min(cell.score for cell in at.values())


def _regret(controller: str, cells: Cells, places: Sequence[Place], left_out: int) -> Regret:
    own = [(place, cells[place][controller]) for place in places]
    excesses = [(excess(cells[place], controller), _name(place)) for place in places]
    beyond = [(max(cell.loss - cell.own_loss, 0.0), cell) for _, cell in own]
    best = [(cell.bitrate_bps, min(cells[place].values(), key=lambda one: one.rank).bitrate_bps) for place, cell in own]
    none = Cell(0, None, 0, 0, None, None, fits=True)
    waits = [(cell.queueing_s, cells[place].get(SHORT_QUEUES, none).queueing_s) for place, cell in own]
    both = [(our, their) for our, their in waits if our is not None and their is not None]
    theirs = sum(their for _, their in both)
    paired = [(cell.others_bps, cells[place].get(USUAL, none).others_bps, _name(place)) for place, cell in own]
    others = [(our / their, name) for our, their, name in paired if our is not None and their]
    return Regret(
        controller=controller,
        mean_rank=_mean_rank(controller, cells),
        paths=len(own),
        paths_left_out=left_out,
        mean=_mean(value for value, _ in excesses) or 0.0,
        worst=max(excesses, key=lambda one: one[0]),
        first_share=sum(value <= SCORE_STEP for value, _ in excesses) / len(excesses),
        bitrate_of_best=_mean(our / top for our, top in best if our is not None and top),
        lost_beyond_own=_mean(lost for lost, _ in beyond) or 0.0,
        lost_beyond_own_unimpaired=_mean(lost for lost, cell in beyond if cell.score < SCORE_STEP),
        queueing_s=_mean(our for our, _ in waits),
        queueing_of_vegas=sum(our for our, _ in both) / theirs if theirs else None,
        others_of_cubic=_mean(share for share, _ in others),
        others_of_cubic_worst=min(others, key=lambda one: one[0], default=None),
    )


def _mean_rank(controller: str, cells: Cells) -> float:
    by_scenario: dict[str, list[float]] = defaultdict(list)
    for (scenario, _), at in cells.items():
        if controller in at:
            by_scenario[scenario].append(at[controller].rank)
    return _mean(_mean(ranks) for ranks in by_scenario.values()) or 0.0


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _steps(value: float, step: float) -> int:
    return math.floor(value / step + 0.5)


def _name(place: Place) -> str:
    return " ".join(part for part in place if part)


def _table(regrets: Iterable[Regret]) -> Iterator[str]:
    yield f"{'rank':>6} {'regret':>8} {'worst':>8} {'first':>7} {'lost':>7} {'÷vegas':>7} {'÷cubic':>7}  controller"
    for one in regrets:
        both = (one.queueing_of_vegas, one.others_of_cubic)
        ratios = [f"{value:7.2f}" if value is not None else f"{'-':>7}" for value in both]
        shares = f"{one.mean:8.2%} {one.worst[0]:8.2%} {one.first_share:7.1%} {one.lost_beyond_own:7.2%}"
        yield f"{one.mean_rank:6.2f} {shares} {' '.join(ratios)}  {one.controller} (worst: {one.worst[1]})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the regret of each controller over the results in the directories of the command line."""
    parser = argparse.ArgumentParser(prog="playrate_lab.scores", description=main.__doc__)
    parser.add_argument("directories", nargs="+", metavar="DIR", help="directory with the results of `lab run`")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    with exit_on_error(parser.prog):
        found = regrets(cells(rows(*options.directories)))
    text = json.dumps([asdict(one) for one in found], indent=1) if options.json else "\n".join(_table(found))
    print(text)


if __name__ == "__main__":
    main()
