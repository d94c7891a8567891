"""Divides runs among the nodes of a Ray cluster.

A node makes a shard, `lab run --shard I/N`, in its own directory and sends the files back, so that nodes and driver
need no shared storage. The driver keeps each shard below the results directory and joins them there.
"""

from __future__ import annotations

import itertools
import json
import math
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from playrate_lab._command import BadInputError, LabError, call, error_of, find_lab

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: A shard that has this file is finished.
_FINISHED = "runs.jsonl"
#: File that describes the shards of a directory.
_PLAN = "plan.json"


class ShardFiles(NamedTuple):
    """Result of a shard, as its node sends it back."""

    #: Identifier of the node in the cluster.
    node: str
    exit_code: int
    #: Error of `lab`; empty if there is none.
    message: str
    #: Content of each file by its path inside the shard's directory.
    files: dict[str, bytes]


def run(
    program: Path,
    selection: Sequence[str],
    directory: Path,
    *,
    resume: bool,
    cores: int | None,
    shards: int | None,
    progress: bool,
) -> None:
    """Makes the runs of a selection on the cluster and joins them in `directory`.

    Raises:
        BadInputError: if the selection is wrong, `directory` has results and `resume` is false, or it has shards of
            another selection.
        LabError: if Ray is not installed, or a shard fails; finished shards are kept.
    """
    try:
        import ray
    except ImportError as error:
        raise LabError('engine="ray" needs Ray: pip install "ray>=2.40"') from error
    if not resume and any((directory / name).exists() for name in (_FINISHED, "runs.part.jsonl", "shards")):
        raise BadInputError(
            f"{directory} already holds results; add resume=True to keep them and make the missing runs"
        )
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    plan_file = directory / "shards" / _PLAN
    if shards is None:
        # The same number as before, whatever the cluster's size now, so that finished shards remain valid.
        places = math.floor(ray.cluster_resources().get("CPU", 1) / (cores or 1))
        shards = json.loads(plan_file.read_text(encoding="utf-8"))["shards"] if plan_file.exists() else max(1, places)
    names = itertools.takewhile(lambda word: not word.startswith("--"), selection)
    scenarios = [name for name in names if Path(name).exists()]
    version = call(program, ["--version"]).split()[-1]
    texts = {name: Path(name).read_text(encoding="utf-8") for name in scenarios}
    plan = {"version": version, "selection": list(selection), "shards": shards, "scenarios": texts}
    _keep_plan(plan_file, json.dumps(plan))
    command = [str(program), "run", *selection, "--jobs", str(cores or 1)]
    directories = [plan_file.parent / str(number) for number in range(1, shards + 1)]
    _make(command, directories, version, scenarios, cores=cores or 1, progress=progress)
    _join(directories, directory)


def _keep_plan(file: Path, plan: str) -> None:
    """Writes the plan of the shards into `file`.

    Raises:
        BadInputError: if the directory has shards of another plan.
    """
    if file.exists():
        if file.read_text(encoding="utf-8") != plan:
            raise BadInputError(
                f"{file.parent} has shards of other arguments, scenarios or another version of lab; resume with those, "
                "give another `out`, or remove the shards; joined results are kept"
            )
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(plan, encoding="utf-8")
    new.replace(file)


def _make(
    command: list[str], directories: list[Path], version: str, scenarios: list[str], *, cores: int, progress: bool
) -> None:
    """Makes the unfinished shards on the cluster, and stores each in its directory.

    Args:
        command: Command line that makes all runs, without `--shard` and `--out`.
        directories: Directory of each shard.
        version: Version that the program must have on each node.
        scenarios: Paths of scenario files, as the command names them.
        cores: Cores of each shard.
        progress: Show the progress on `sys.stderr`.
    """
    import ray
    from ray import cloudpickle

    def say(line: str) -> None:
        if progress:
            print(line, file=sys.stderr, flush=True)

    # Nodes need Ray, but not this package.
    cloudpickle.register_pickle_by_value(sys.modules["playrate_lab"])
    task = ray.remote(num_cpus=cores, scheduling_strategy="SPREAD")(make_shard)
    all_shards = [(f"{number}/{len(directories)}", directory) for number, directory in enumerate(directories, 1)]
    missing = [(shard, directory) for shard, directory in all_shards if not (directory / _FINISHED).exists()]
    done = len(all_shards) - len(missing)
    if done:
        say(f"{done} of {len(all_shards)} shards were finished before")
    home = str(Path.cwd())
    waiting = {
        task.remote([*command, "--shard", shard], version, home, scenarios): (shard, directory)
        for shard, directory in missing
    }
    try:
        while waiting:
            (ready, *_), _ = ray.wait(list(waiting))
            shard, directory = waiting.pop(ready)
            made: ShardFiles = ShardFiles(*ray.get(ready))
            if made.exit_code != 0:
                error = error_of(made.exit_code, made.message)
                raise type(error)(f"shard {shard} on node {made.node[:8]}: {error}")
            _keep(made.files, directory)
            done += 1
            say(f"{done} of {len(all_shards)} shards, the last one by node {made.node[:8]}")
    finally:
        for unfinished in waiting:
            ray.cancel(unfinished)


def make_shard(
    command: list[str], version: str, home: str, scenarios: list[str]
) -> tuple[str, int, str, dict[str, bytes]]:
    """Makes a shard on the node where this is called, in a temporary directory.

    Args:
        command: Command line of the shard, without `--out`.
        version: Version that the program must have.
        home: The driver's current directory. The command runs there if this node also has the scenario files there;
            otherwise it runs in the task's own directory, which Ray's `working_dir` fills.
        scenarios: Paths of scenario files, as the command names them.

    Returns:
        The fields of `ShardFiles`.
    """
    import ray

    node = ray.get_runtime_context().get_node_id()
    try:
        lab = find_lab(command[0] if Path(command[0]).exists() else None)
        own_version = call(lab, ["--version"]).split()[-1]
        if own_version != version:
            raise LabError(f"{lab} has version {own_version}; the driver's has {version}")
        with tempfile.TemporaryDirectory(prefix="playrate-lab-") as own:
            has_all = all(Path(home, scenario).exists() for scenario in scenarios)
            call(lab, [*command[1:], "--out", own], directory=home if has_all and Path(home).is_dir() else None)
            paths = [path for path in Path(own).rglob("*") if path.is_file()]
            files = {path.relative_to(own).as_posix(): path.read_bytes() for path in paths}
    except (LabError, OSError) as error:
        # An exit code, because the receiver would need this package to read an exception.
        return node, 2 if isinstance(error, BadInputError) else 1, str(error), {}
    return node, 0, "", files


def _keep(files: dict[str, bytes], directory: Path) -> None:
    """Writes the files of a shard in one step, so that an interruption leaves all or none."""
    new = directory.with_name(f"{directory.name}.new")
    for path in (new, directory):
        if path.exists():
            shutil.rmtree(path)
    for name, content in files.items():
        file = new / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    new.rename(directory)


def _join(shards: Sequence[Path], directory: Path) -> None:
    """Writes the files of all shards into `directory`, as one `lab run` would. Other runs already there follow."""
    for shard in shards:
        for part in ("scenarios", "series"):
            if (shard / part).exists():
                shutil.copytree(shard / part, directory / part, dirs_exist_ok=True)
    # Shard I of N has the runs I, I + N, I + 2 N and so on.
    turns = itertools.zip_longest(*(_runs(shard / _FINISHED) for shard in shards))
    ordered = {run[0]: run[1] for turn in turns for run in turn if run is not None}
    whole = directory / _FINISHED
    if whole.exists():
        ordered |= {key: rows for key, rows in _runs(whole) if key not in ordered}
    new = directory / "runs.new.jsonl"
    new.write_text("".join(ordered.values()), encoding="utf-8")
    new.rename(whole)


def _runs(file: Path) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yields each run of a file of rows: its key and its lines."""
    names = ("scenario", "case", "scenario_hash", "controller", "seed")

    def key(line: str) -> tuple[Any, ...]:
        row = json.loads(line)
        return tuple(row[name] for name in names)

    with file.open(encoding="utf-8") as lines:
        for name, rows in itertools.groupby(lines, key):
            yield name, "".join(rows)
