"""Commands: `python -m papers run|search|page`, from the root of the checkout."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import playrate_lab
from papers import figures, page, runs, search, unknowns
from papers.rows import ROWS
from papers.unknowns import BadInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

_ABOUT = """
Repeats the experiments of five papers and reports which of their claims hold.

  python -m papers search   finds the world of each test bed in which most fitted claims agree (hours)
  python -m papers run      makes the rows that are judged, in the nominal and the fitted world (an hour or two)
  python -m papers page     writes docs/papers/results.md, fidelity.json and figures, from committed values

search and run need the program lab, on the PATH or named by PLAYRATE_LAB. Unknowns, and which rows a search
may look at, are declared in papers/worlds/. The exit code is 2 for bad input, 1 for other errors.
"""


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(
        "python -m papers", description=_ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    beds = f"test beds: {', '.join(unknowns.names())} (default: all)"

    run = commands.add_parser("run", help="make the judged rows", description=runs.__doc__)
    run.add_argument("beds", nargs="*", metavar="BED", help=beds)
    run.add_argument("--world", choices=[*runs.JUDGED, "both"], default="both", help="world to run (default: both)")
    run.add_argument(
        "--quick", action="store_true", help="short titles and two trials, for a first look; kept in --out"
    )
    run.add_argument(
        "--trials", type=int, metavar="N", help="maximum number of trials per controller (default: as in the papers)"
    )
    run.add_argument("--values", type=Path, help="directory for the values (default: docs/papers/values)")

    find = commands.add_parser("search", help="search for the fitted worlds", description=search.__doc__)
    find.add_argument("beds", nargs="*", metavar="BED", help=beds)
    for command in (run, find):
        command.add_argument("--jobs", type=int, default=2, metavar="N", help="simultaneous runs (default: 2)")
        kept = "directory for results; existing results are reused (default: lab-papers)"
        command.add_argument("--out", type=Path, default=Path("lab-papers"), metavar="DIR", help=kept)

    write = commands.add_parser("page", help="write the page", description=page.__doc__)
    write.add_argument("--check", action="store_true", help="write nothing; exit code 1 if a file would differ")
    write.add_argument("--values", type=Path, default=runs.VALUES, help="directory of the values")
    for command in (find, write):
        command.add_argument("--fitted", type=Path, default=page.FITTED, help="directory of the outcomes of searches")
    write.add_argument("--docs", type=Path, default=page.DOCS, help="directory of the page")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code."""
    given = parser().parse_args(arguments)
    try:
        return {"run": _run, "search": _search, "page": _page}[given.command](given)
    except (BadInputError, playrate_lab.BadInputError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except playrate_lab.LabError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command continues from here", file=sys.stderr)
        return 1


def _beds(given: argparse.Namespace) -> list[unknowns.TestBed]:
    if given.jobs < 1:
        raise BadInputError(f"--jobs must be at least 1 (got {given.jobs})")
    beds = [unknowns.load(name) for name in given.beds or unknowns.names()]
    playrate_lab.find_lab()
    return beds


def _run(given: argparse.Namespace) -> int:
    worlds = runs.JUDGED if given.world == "both" else (given.world,)
    values = given.values or (given.out / "values" if given.quick else runs.VALUES)
    for bed in _beds(given):
        options = {"quick": given.quick, "cores": given.jobs, "most_trials": given.trials}
        print(runs.run(bed, worlds, **options, out=given.out, values=values))
    return 0


def _search(given: argparse.Namespace) -> int:
    for bed in _beds(given):
        outcome = search.search(bed, given.out / bed.name, processes=given.jobs)
        given.fitted.mkdir(parents=True, exist_ok=True)
        path = given.fitted / f"{bed.name}.json"
        path.write_text(json.dumps(outcome, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(path)
    return 0


def _page(given: argparse.Namespace) -> int:
    inputs = page.Inputs.read(given.values, given.fitted)
    texts = page.files(inputs, given.docs)
    if given.check:
        wrong = page.differing(texts)
        for path in wrong:
            print(f"{path} does not match the values; run `python -m papers page`", file=sys.stderr)
        return 1 if wrong else 0
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    figures.draw(list(ROWS.values()), inputs.values, inputs.beds, inputs.searches, given.docs / "figures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
