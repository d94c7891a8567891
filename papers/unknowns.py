"""Test beds: parameters that the papers leave open, data that the search may see, and the effect of a world on a run.

A *world* is a value for each unknown of a test bed, the same for all of its figures. The nominal world is empty: every
scenario is as in its file.
"""

from __future__ import annotations

import functools
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from playrate_lab._command import split

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Value: TypeAlias = "str | int | float | bool | list[str]"
World: TypeAlias = "dict[str, Value]"

ROOT = Path(__file__).parent.parent
WORLDS = Path(__file__).parent / "worlds"


class BadInputError(ValueError):
    """An argument or a file is wrong; the message names it and says what would be right."""


@dataclass(frozen=True)
class Unknown:
    """A parameter that the papers on a test bed do not give."""

    name: str
    #: Source of the candidates, or the reason for them.
    why: str
    #: Key of the scenarios on which it acts, such as `path.queue`.
    key: str | None = None
    #: Argument of the controllers `of`, such as `counting`.
    argument: str | None = None
    #: Component of the controllers `of`, such as `start`.
    component: str | None = None
    #: Algorithms or aliases, such as `ccp` (with all aliases of it) or `ccp-lb`.
    of: tuple[str, ...] = ()
    #: The only scenarios on which it acts; all if empty.
    only: tuple[str, ...] = ()
    #: The scenarios' own value, where it is the same for all of them.
    nominal: Value | None = None
    #: Candidates, all equally likely.
    choices: tuple[Value, ...] = ()
    #: Ends of a range of numbers, in place of `choices`; whole numbers if both ends are.
    range: tuple[float, float] | None = None
    #: True if the range is sampled on a logarithmic scale.
    log: bool = False
    #: Text of a number of the range, such as `{}packets`.
    form: str = "{}"

    def text(self, value: Value) -> str:
        """Returns the value as written on the command line of `lab`."""
        if self.range is not None and not isinstance(value, str):
            return self.form.format(value)
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def draw(self, source: random.Random) -> Value:
        """Returns a value drawn uniformly from the candidates or from the range."""
        if self.range is None:
            return self.choices[source.randrange(len(self.choices))]
        least, most = self.range
        share = source.random()
        return self.rounded(least * (most / least) ** share if self.log else least + (most - least) * share)

    def rounded(self, value: float) -> int | float:
        """Returns a number of the range rounded as in worlds: whole, or to three digits."""
        whole = self.range is not None and all(isinstance(end, int) for end in self.range)
        return round(value) if whole else float(f"{value:.3g}")

    def acts_on(self, scenario: str) -> bool:
        """Returns true if it may act on runs of `scenario`."""
        return not self.only or scenario in self.only

    def changed(self, controller: str, value: Value) -> str:
        """Returns the spec of `controller` with the value of an argument or a component."""
        if self.key is not None or not _is_of(controller, self.of):
            return controller
        if self.component is not None:
            return with_component(controller, self.component, self.text(value))
        return with_argument(controller, str(self.argument), self.text(value))


@dataclass(frozen=True)
class Axis:
    """End of an axis in a paper's figure: if a controller's mean is beyond it, the world is not the paper's."""

    scenario: str
    metric: str
    most: float
    place: str

    @property
    def name(self) -> str:
        """Name in files: `p14-rtt3/lost_packets`."""
        return f"{self.scenario}/{self.metric}"


@dataclass(frozen=True)
class Search:
    """Sizes of a search."""

    #: Number of different worlds to try, including the random sample.
    worlds: int
    #: Number of random worlds to try first; all rows are run in them.
    random: int
    #: Number of worlds that optuna suggests before it receives a result.
    batch: int
    seed: int
    #: Number of worlds to try again with full titles.
    best: int
    #: Maximum number of trials per controller with full titles.
    trials: int


@dataclass(frozen=True)
class TestBed:
    """Scenarios that share parameters which the papers do not give."""

    __test__ = False  # not a class of tests

    name: str
    about: str
    unknowns: tuple[Unknown, ...]
    axes: tuple[Axis, ...]
    #: Rows that the search sees.
    fit: tuple[str, ...]
    #: Rows that it does not see.
    judge: tuple[str, ...]
    #: Parts of the names of metrics that the search never sees.
    unseen: tuple[str, ...]
    #: Reason for this division.
    why: str
    search: Search

    def sees(self, row: str, quantity: str) -> bool:
        """Returns true if the search may look at a comparison of `quantity` in `row`."""
        return row in self.fit and not any(part in quantity for part in self.unseen)

    def random_world(self, number: int) -> World:
        """Returns world `number` of the random sample: every unknown is drawn on its own."""
        seeds = ((one, f"{self.search.seed} {self.name} {number} {one.name}") for one in self.unknowns)
        return {one.name: one.draw(random.Random(seed)) for one, seed in seeds}

    def settings(self, world: Mapping[str, Value], scenario: str) -> dict[str, str]:
        """Returns the keys of `scenario` that the world sets, with the texts of their values."""
        chosen = self._chosen(world, scenario)
        keys = {one.key: one.text(value) for one, value in chosen if one.key is not None}
        bulk = scenario_file(scenario).get("bulk", {}).get("controller", "same")
        if bulk != "same" and (changed := self.spec(world, scenario, bulk)) != bulk:
            keys["bulk.controller"] = changed
        return keys

    def spec(self, world: Mapping[str, Value], scenario: str, controller: str) -> str:
        """Returns the spec that `controller` of the nominal scenario has in the world."""
        for unknown, value in self._chosen(world, scenario):
            controller = unknown.changed(controller, value)
        return controller

    def _chosen(self, world: Mapping[str, Value], scenario: str) -> list[tuple[Unknown, Value]]:
        """Returns the unknowns that the world changes in `scenario`, in the order of the file."""
        return [
            (one, world[one.name])
            for one in self.unknowns
            if one.name in world and one.acts_on(scenario) and world[one.name] != one.nominal
        ]


def scenario_path(scenario: str) -> Path:
    """Returns the file of a built-in scenario."""
    return ROOT / "scenarios" / f"{scenario}.toml"


@functools.cache
def scenario_file(scenario: str) -> dict[str, Any]:
    """Returns the tables of a built-in scenario."""
    return tomllib.loads(scenario_path(scenario).read_text(encoding="utf-8"))


def names() -> list[str]:
    """Returns the names of all test beds."""
    return sorted(path.stem for path in WORLDS.glob("*.toml"))


def load(name: str) -> TestBed:
    """Reads a test bed.

    Raises:
        BadInputError: if no test bed has this name, or its file is wrong.
    """
    if name not in names():
        raise BadInputError(f"unknown test bed `{name}`; expected one of: {', '.join(names())}")
    path = WORLDS / f"{name}.toml"
    try:
        return parse(name, tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise BadInputError(f"{path}: {error}") from error


def parse(name: str, tables: dict[str, Any]) -> TestBed:
    """Returns the test bed that a file's tables describe."""
    unknowns = tuple(_unknown(table) for table in tables["unknown"])
    bed = TestBed(
        name=name,
        about=tables["about"].strip(),
        unknowns=unknowns,
        axes=tuple(Axis(**table) for table in tables.get("axis", ())),
        fit=tuple(tables["fit"]["rows"]),
        judge=tuple(tables["judge"]["rows"]),
        unseen=tuple(tables["judge"]["quantities"]),
        why=tables["judge"]["why"].strip(),
        search=Search(**tables["search"]),
    )
    for what in (bed.fit + bed.judge, tuple(one.name for one in unknowns)):
        if twice := {one for one in what if what.count(one) > 1}:
            raise BadInputError(f"{name}: {', '.join(sorted(twice))} is named twice")
    return bed


def _unknown(table: dict[str, Any]) -> Unknown:
    lists: dict[str, Any] = {key: tuple(table[key]) for key in ("of", "only", "choices", "range") if key in table}
    unknown = Unknown(**{**table, **lists, "why": table["why"].strip()})
    if sum(one is not None for one in (unknown.key, unknown.argument, unknown.component)) != 1:
        raise BadInputError(f"unknown `{unknown.name}` needs exactly one of: key, argument, component")
    if bool(unknown.choices) == (unknown.range is not None):
        raise BadInputError(f"unknown `{unknown.name}` needs either choices or range")
    return unknown


def with_argument(controller: str, name: str, value: str) -> str:
    """Returns a spec with `name=value` among the arguments of its head, in place of one of that name."""
    head, arguments, components = _parts(controller)
    kept = [one for one in arguments if one.partition("=")[0] != name]
    return f"{head}({','.join([*kept, f'{name}={value}'])}){components}"


def with_component(controller: str, key: str, value: str) -> str:
    """Returns a spec with the component `value` behind `key`, in place of the one that it names."""
    pieces = split(controller, "+")
    return "+".join([*(one for one in pieces if not one.startswith(f"{key}=")), f"{key}={value}"])


def _parts(controller: str) -> tuple[str, list[str], str]:
    """Returns the name, the arguments and the components (with a leading plus sign) of a spec."""
    first, *components = split(controller, "+")
    head, _, rest = first.partition("(")
    return head, split(rest.removesuffix(")"), ",") if rest else [], "".join(f"+{one}" for one in components)


def _is_of(controller: str, of: Sequence[str]) -> bool:
    """Returns true if the spec names one of these algorithms or aliases; an alias begins with its algorithm."""
    head = _parts(controller)[0]
    return head in of or head.partition("-")[0] in of
