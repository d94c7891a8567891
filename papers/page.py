"""Writes the page on the papers, `docs/papers/results.md`, and the outcomes as data, `docs/papers/fidelity.json`.

Both follow from committed files alone: the values of the judged rows (`docs/papers/values/`), the outcomes of the
searches (`papers/worlds/fitted/`) and the sentences at the top (`papers/summary.md`).

Numbers in the sentences are placeholders. `{all.primaries}` is a count, as are `{P13.fitted.agrees}`,
`{kyutech.nominal.contradicted}`, `{all.unseen.fitted.no_difference}` and `{P13.secondaries.nominal.agrees}`;
`{P13-4.fitted}` is an outcome and `{P13-4.robustness}` a share of random worlds. `{P13-4.fitted=agrees}` is the
same and an error if it is something else.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from papers import figures, runs, unknowns
from papers.judge import Outcome, words
from papers.rows import ROWS
from papers.search import declared, reach
from papers.unknowns import ROOT, BadInputError, TestBed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from papers.judge import Finding, Results, Row

DOCS = ROOT / "docs" / "papers"
FITTED = unknowns.WORLDS / "fitted"
TEMPLATE = Path(__file__).with_name("page.md")
#: Sentences at the top of the page.
SUMMARY = Path(__file__).with_name("summary.md")
#: Most list items of the summary.
MOST_SENTENCES = 10
#: Chance levels up to this one are left to `fidelity.json`.
SMALL_CHANCE = 0.01
NOT_RUN, NOT_MEASURED, DASH = "not run", "not measured", "\N{EN DASH}"
#: An object of `fidelity.json`.
Data: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Inputs:
    """What the page follows from."""

    beds: dict[str, TestBed]
    #: Values by test bed and world.
    values: dict[str, dict[str, Results]]
    #: Outcomes of searches by test bed.
    searches: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, values: Path = runs.VALUES, fitted: Path = FITTED) -> Inputs:
        """Reads committed values and searches.

        Raises:
            BadInputError: if no row was run, or a search is of other declared unknowns.
        """
        beds = {name: unknowns.load(name) for name in unknowns.names()}
        found = {name: runs.read_values(values / f"{name}.csv") for name in beds if (values / f"{name}.csv").exists()}
        if not found:
            raise BadInputError(f"{values} has no values; `python -m papers run` makes them")
        paths = {name: fitted / f"{name}.json" for name in beds}
        searches = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items() if path.exists()}
        for name, search in searches.items():
            if search["declared"] != declared(beds[name]):
                raise BadInputError(f"{paths[name]} is of other declared unknowns; `python -m papers search {name}`")
        return cls(beds, found, searches)


# --- fidelity.json


def fidelity(inputs: Inputs) -> Data:
    """Returns the content of `fidelity.json`, from which the page is written."""
    rows = [_row_data(inputs, row) for row in ROWS.values()]
    scopes: dict[str, list[Data]] = {"all": rows}
    for row in rows:
        for scope in (row["paper"], row["test_bed"]):
            scopes.setdefault(scope, []).append(row)
    return {
        "format": "papers-fidelity",
        "version": 2,
        "counts": {scope: counts(some) for scope, some in scopes.items()},
        "test_beds": [_bed_data(inputs, bed) for bed in inputs.beds.values()],
        "rows": rows,
    }


def counts(rows: Sequence[Data]) -> Data:
    """Returns the number of claims by kind, world and outcome; `unseen` are primaries that no search looked at."""
    kinds = {
        "primaries": [row["primary"] for row in rows if row["primary"]],
        "unseen": [row["primary"] for row in rows if row["primary"] and row["judged"]],
        "secondaries": [claim for row in rows for claim in row["secondary"]],
    }
    return {
        kind: {"of": len(some), **{world: _tally(some, world) for world in runs.JUDGED}} for kind, some in kinds.items()
    }


def _tally(claims: Sequence[Data], world: str) -> dict[str, int]:
    found = Counter(claim[world]["outcome"] for claim in claims if claim[world])
    return {outcome.name.lower(): found[outcome.value] for outcome in Outcome}


def _bed_data(inputs: Inputs, bed: TestBed) -> Data:
    search, values = inputs.searches.get(bed.name), inputs.values.get(bed.name, {})
    reached = {axis: {w: reach(values[w], axis) if w in values else None for w in runs.JUDGED} for axis in bed.axes}
    return {
        "name": bed.name,
        "about": bed.about,
        "why": bed.why,
        "fit": bed.fit,
        "judge": bed.judge,
        "unseen_quantities": bed.unseen,
        "search": search
        and {name: search[name] for name in ("seed", "tried", "within_axes", "free_axes", "seen", "world")},
        "axes": [{**vars(axis), **by_world} for axis, by_world in reached.items()],
    }


def _row_data(inputs: Inputs, row: Row) -> Data:
    values, search = inputs.values.get(row.test_bed, {}), inputs.searches.get(row.test_bed)
    judged = {world: row.judge(values[world]) for world in runs.JUDGED if world in values}
    parts = {world: (judgement.primary, *judgement.secondary) for world, judgement in judged.items()}
    claims = []
    for number, findings in enumerate(zip(*parts.values(), strict=True)):
        found = dict(zip(parts, findings, strict=True))
        sees = (inputs.beds[row.test_bed].sees(row.id, one.quantity) for one in findings)
        seen = f"{row.id}/{number}" in search["seen"] if search else all(sees)
        one = findings[0]
        claims.append(
            {
                "claim": one.claim,
                "quotation": one.quotation,
                "place": one.place,
                "judged": not seen,
                "robustness": search and search["robustness"].get(f"{row.id}/{number}"),
                **{world: _finding_data(found[world]) if world in found else None for world in runs.JUDGED},
            }
        )
    magnitudes = zip(*(judgement.magnitudes for judgement in judged.values()), strict=True)
    return {
        "id": row.id,
        "paper": row.paper,
        "test_bed": row.test_bed,
        "says": row.says,
        "judged": claims[0]["judged"] if claims else None,
        "robustness": claims[0]["robustness"] if claims else None,
        "primary": claims[0] if claims else None,
        "secondary": claims[1:],
        "magnitudes": [dict(zip(judged, map(vars, one), strict=True)) for one in magnitudes],
    }


def _finding_data(finding: Finding) -> Data:
    # Four digits are the same on every machine.
    kept = {name: getattr(finding, name) for name in ("estimate", "low", "high", "effect", "chance", "margin")}
    rounded = {name: None if value is None else float(f"{value:.4g}") for name, value in kept.items()}
    outcome = NOT_MEASURED if finding.outcome is None else finding.outcome.value
    return {"outcome": outcome, **rounded, "unit": finding.unit, "quantity": finding.quantity, "text": finding.text}


# --- Placeholders


def names_of(data: Data) -> dict[str, str]:
    """Returns the texts of all placeholders."""
    names = {}
    for scope, kinds in data["counts"].items():
        for kind, counted in kinds.items():
            names[f"{scope}.{kind}"] = str(counted["of"])
            before = scope if kind == "primaries" else f"{scope}.{kind}"
            for world in runs.JUDGED:
                names |= {f"{before}.{world}.{name}": str(number) for name, number in counted[world].items()}
    for row in data["rows"]:
        names |= {f"{row['id']}.{world}": _outcome(row["primary"], world) for world in runs.JUDGED}
        robust = row["robustness"]
        names[f"{row['id']}.robustness"] = words(robust["agrees"] / robust["of"], "share") if robust else NOT_RUN
    return names


def filled(text: str, names: Mapping[str, str]) -> str:
    """Returns the text with its placeholders filled in.

    Raises:
        BadInputError: if a placeholder is unknown or has another value than the text says, or the text is too long.
    """

    def fill(match: re.Match[str]) -> str:
        name, _, said = match[1].partition("=")
        if name not in names:
            raise BadInputError(
                f"summary: unknown placeholder `{{{match[1]}}}`; expected one like {{all.fitted.agrees}}"
            )
        if said and names[name] != said:
            raise BadInputError(f"summary: `{name}` is {names[name]!r}, and the text says {said!r}")
        return names[name]

    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    sentences = sum(line.startswith("- ") for line in text.splitlines())
    if sentences > MOST_SENTENCES:
        raise BadInputError(f"summary: at most {MOST_SENTENCES} list items (got {sentences})")
    return re.sub(r"\{([^{}]+)\}", fill, text)


# --- results.md


def page(data: Data, summary: str) -> str:
    """Returns the content of `results.md`: `papers/page.md` with the parts that it asks for."""
    parts = {
        "summary": rewrapped(filled(summary, names_of(data))),
        "primaries": _primaries(data["rows"]),
        "counts": _counts(data["counts"]),
        "searches": "\n\n".join(_search(bed) for bed in data["test_beds"]),
        "rows": "\n\n".join(part for row in data["rows"] for part in _row(row) if part),
    }
    return re.sub(
        r"^\{(\w+)\}$", lambda match: parts[match[1]], TEMPLATE.read_text(encoding="utf-8"), flags=re.MULTILINE
    )


def wrapped(text: str, indent: str = "") -> str:
    """Returns a paragraph in lines of at most 120 characters."""
    return textwrap.fill(
        " ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent
    )


def rewrapped(text: str) -> str:
    """Returns list items and paragraphs, which placeholders have changed, in lines of at most 120 characters."""
    blocks = re.split(r"\n(?=- )|\n\n+", text.strip())
    lines = [wrapped(block, "  " if block.startswith("- ") else "") for block in blocks]
    return "\n".join(lines)


def table(head: Sequence[str], lines: Iterable[Sequence[str]], right: Sequence[str] = ()) -> str:
    """Returns a table; the columns in `right` have numbers."""
    marks = ["---:" if name in right else "---" for name in head]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, marks, *lines))


def _primaries(rows: Sequence[Data]) -> str:
    lines = []
    for row in rows:
        says = row["says"] + (" \N{DAGGER}" if row["judged"] else "")
        outcomes = (_bold(row["primary"], world) if row["primary"] else NOT_RUN for world in runs.JUDGED)
        lines.append((f"[{row['id']}](#{row['id'].lower().replace('.', '')})", says, *outcomes))
    return table(("row", "conclusion", *runs.JUDGED), lines)


def _counts(scopes: Mapping[str, Data]) -> str:
    names = {"primaries": "conclusions", "unseen": "unseen ones", "secondaries": "other sentences"}
    kept = {scope: kinds for scope, kinds in scopes.items() if scope not in unknowns.names()}
    lines = [
        (scope, *(", ".join(_counts_of(kinds[kind][world]) for world in runs.JUDGED) for kind in names))
        for scope, kinds in kept.items()
    ]
    return table(("paper", *names.values()), lines, right=tuple(names.values()))


def _counts_of(counted: Mapping[str, int]) -> str:
    """Returns the counts of the outcomes in a world; a dash if nothing was run in it."""
    return "/".join(map(str, counted.values())) if any(counted.values()) else DASH


def _search(bed: Data) -> str:
    search, parts = bed["search"], [f"### Test bed {bed['name']}", wrapped(bed["about"])]
    if search is None:
        return "\n\n".join([*parts, "No search has been made."])
    tried, within, seen = search["tried"], search["within_axes"], len(search["seen"])
    known = f", {within} within the papers' axes" if bed["axes"] else ", without axes"
    free = ", ".join(f"`{name}`" for name in search["free_axes"])
    left_out = f" Not counted: {free}." if free else ""
    parts.append(wrapped(f"{tried} worlds{known}; {seen} claims seen; seed {search['seed']}.{left_out}"))
    parts.append(f"![Scores of worlds of {bed['name']}, and mean score by choice](figures/search-{bed['name']}.svg)")
    world, declared_ones = search["world"], unknowns.load(bed["name"]).unknowns
    chosen = (f"`{one.name}` {one.text(world[one.name])}" for one in declared_ones if world[one.name] != one.nominal)
    parts.append(wrapped(f"Fitted unknowns: {', '.join(chosen)}."))
    ends = []
    for axis in bed["axes"]:
        measured = [axis[world] for world in runs.JUDGED]
        if any(value is not None and value > axis["most"] for value in measured):
            numbers = (DASH if value is None else _number(value) for value in (axis["most"], *measured))
            ends.append((axis["place"], f"{axis['scenario']}: `{axis['metric']}`", *numbers))
    if ends:
        parts.append("Exceeded axes, by the largest mean of a controller:")
        parts.append(table(("figure", "axis", "ends at", *runs.JUDGED), ends, right=("ends at", *runs.JUDGED)))
    return "\n\n".join(parts)


def _number(value: float) -> str:
    rounded = float(f"{value:.4g}")
    return f"{rounded:,.0f}" if rounded.is_integer() else f"{rounded:,}"


def _row(row: Data) -> list[str]:
    primary, name = row["primary"], row["id"]
    if not primary:
        return [f"### {name}", f"{row['says']}.", "Not run."]
    robust = row["robustness"]
    parts = [f"### {name}", wrapped(f"{primary['place']}: “{primary['quotation']}”.")]
    parts.append(f"![{name}](figures/{figures.name_of(name)}.svg)")
    measured = {world: _measured(primary, world) for world in runs.JUDGED}
    if len(set(measured.values())) == 1:
        measured = {"both worlds": measured[runs.JUDGED[0]]}
    text = "; ".join(f"{world} {found}" for world, found in measured.items())
    agrees = f" Robustness {robust['agrees']}/{robust['of']}." if robust else ""
    parts.append(wrapped(f"{text[0].upper()}{text[1:]}.{agrees}"))
    ran = [world for world in runs.JUDGED if primary[world]]
    printed = [
        (
            one[ran[0]]["what"],
            one[ran[0]]["printed"],
            *(_brief(one[w]["measured"]) if w in one else NOT_RUN for w in runs.JUDGED),
        )
        for one in row["magnitudes"]
    ]
    if printed:
        parts.append(table(("printed number", "paper", *runs.JUDGED), printed))
    return parts


def _outcome(claim: Data | None, world: str) -> str:
    return claim[world]["outcome"] if claim and claim[world] else NOT_RUN


def _bold(claim: Data, world: str) -> str:
    outcome = _outcome(claim, world)
    return f"**{outcome}**" if outcome == Outcome.AGREES.value else outcome


def _measured(claim: Data, world: str) -> str:
    """Returns the estimate with its interval and margin, and an agreement's chance level above 1 %."""
    one = claim[world]
    if not one or one["estimate"] is None:
        return _outcome(claim, world)
    kept = {
        name: words(one[name], one["unit"]) for name in ("estimate", "low", "high", "margin") if one[name] is not None
    }
    text = kept["estimate"]
    if "low" in kept and "high" in kept:
        text = _brief(f"{text} ({kept['low']} to {kept['high']})")
    text += f", margin {kept['margin']}" if "margin" in kept else ""
    tells = one["outcome"] == Outcome.AGREES.value and (one["chance"] or 0) > SMALL_CHANCE
    return text + (f", chance {words(one['chance'], 'share')}" if tells else "")


def _brief(measured: str) -> str:
    """Returns a mean with its interval, whose ends have the mean's unit, with the unit once."""
    return re.sub(r" (\S+) \((\S+) \1 to (\S+) \1\)", r" \1 (\2 to \3)", measured)


# --- Writing


def files(inputs: Inputs, docs: Path = DOCS) -> dict[Path, str]:
    """Returns the texts of the page and of the data.

    Raises:
        BadInputError: if a placeholder of the summary is wrong.
    """
    data = fidelity(inputs)
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    return {docs / "results.md": page(data, SUMMARY.read_text(encoding="utf-8")), docs / "fidelity.json": text}


def differing(texts: Mapping[Path, str]) -> list[Path]:
    """Returns the files that are not as they should be."""
    return [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
