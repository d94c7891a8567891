"""Divides runs among the nodes of a Ray cluster.

A node makes a shard in a directory of its own and sends the files back, so that nodes and driver share no storage. The
driver keeps each shard below the directory of the results and merges them with `lab merge`.
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
    from collections.abc import Sequence

#: A shard that has this file is finished.
_FINISHED = "runs.jsonl"
#: What the shards of a directory are of.
_PLAN = "jobs.json"


class ShardFiles(NamedTuple):
    """What a node sends back for a shard."""

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
    """Makes the runs of a selection on the cluster and merges them into `directory`.

    Raises:
        BadInputError: if the selection is wrong, or `directory` has results and `resume` is false.
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
    options = ["--out", str(directory), "--lab", str(program), "--cores", str(cores or 1)]
    plan_file = directory / "shards" / _PLAN
    if shards is None:
        places = math.floor(ray.cluster_resources().get("CPU", 1) / (cores or 1))
        if plan_file.exists():
            # As many as before, of which the finished ones are kept, however many places there are now.
            places = len(json.loads(plan_file.read_text(encoding="utf-8"))["jobs"]["jobs"])
        # One shard for all runs is always possible; it says how many there are.
        runs = json.loads(call(program, ["jobs", *selection, "--shards", "1", *options]))["runs"]
        shards = max(1, min(places, runs))
    jobs = json.loads(call(program, ["jobs", *selection, "--shards", str(shards), *options]))
    names = itertools.takewhile(lambda word: not word.startswith("--"), selection)
    scenarios = [name for name in names if Path(name).exists()]
    _keep_plan(plan_file, jobs, scenarios)
    _make(jobs, scenarios, progress=progress)
    call(program, jobs["merge"]["command"][1:])


def _keep_plan(file: Path, jobs: dict[str, Any], scenarios: list[str]) -> None:
    """Writes what the shards beside `file` are of, and removes those that were made by another plan."""
    texts = {name: Path(name).read_text(encoding="utf-8") for name in scenarios}
    plan = json.dumps({"jobs": jobs, "scenarios": texts})
    if file.exists() and file.read_text(encoding="utf-8") == plan:
        return
    shutil.rmtree(file.parent, ignore_errors=True)
    file.parent.mkdir(parents=True)
    file.write_text(plan, encoding="utf-8")


def _make(jobs: dict[str, Any], scenarios: list[str], *, progress: bool) -> None:
    """Makes those shards that are not finished on the cluster, and keeps each in its directory.

    Args:
        jobs: What `lab jobs` wrote.
        scenarios: Paths of scenario files, as the commands name them.
        progress: Show the progress on `sys.stderr`.
    """
    import ray
    from ray import cloudpickle

    def say(line: str) -> None:
        if progress:
            print(line, file=sys.stderr, flush=True)

    # Nodes need Ray, but not this package.
    cloudpickle.register_pickle_by_value(sys.modules["playrate_lab"])
    task = ray.remote(num_cpus=jobs["cores"], scheduling_strategy="SPREAD")(make_shard)
    missing = [job for job in jobs["jobs"] if not (Path(job["directory"]) / _FINISHED).exists()]
    done = len(jobs["jobs"]) - len(missing)
    if done:
        say(f"{done} of {len(jobs['jobs'])} shards were finished before")
    home = str(Path.cwd())
    waiting = {task.remote(job["command"], job["directory"], jobs["program"], home, scenarios): job for job in missing}
    try:
        while waiting:
            (ready, *_), _ = ray.wait(list(waiting))
            job = waiting.pop(ready)
            made: ShardFiles = ShardFiles(*ray.get(ready))
            if made.exit_code != 0:
                error = error_of(made.exit_code, made.message)
                raise type(error)(f"shard {job['shard']} on node {made.node[:8]}: {error}")
            _keep(made.files, Path(job["directory"]))
            done += 1
            say(f"{done} of {len(jobs['jobs'])} shards, the last one by node {made.node[:8]}")
    finally:
        for unfinished in waiting:
            ray.cancel(unfinished)


def make_shard(
    command: list[str], directory: str, program: str, home: str, scenarios: list[str]
) -> tuple[str, int, str, dict[str, bytes]]:
    """Makes a shard on the node that this is called on, in a directory that is gone afterwards.

    Args:
        command: Command line of the shard, which writes `directory`.
        directory: Directory as the command names it.
        program: Version that the program must have.
        home: The driver's current directory. The command is run there if this node has the scenario files there too,
            and otherwise in the task's own, which Ray's `working_dir` fills.
        scenarios: Paths of scenario files, as the command names them.

    Returns:
        The fields of `ShardFiles`.
    """
    import ray

    node = ray.get_runtime_context().get_node_id()
    try:
        lab = find_lab(command[0] if Path(command[0]).exists() else None)
        version = call(lab, ["--version"]).split()[-1]
        if version != program:
            raise LabError(f"{lab} has version {version}; the driver's has {program}")
        with tempfile.TemporaryDirectory(prefix="playrate-lab-") as own:
            words = command[1:]
            words[len(words) - 1 - words[::-1].index(directory)] = own
            has_all = all(Path(home, scenario).exists() for scenario in scenarios)
            call(lab, words, directory=home if has_all and Path(home).is_dir() else None)
            paths = [path for path in Path(own).rglob("*") if path.is_file()]
            files = {path.relative_to(own).as_posix(): path.read_bytes() for path in paths}
    except (LabError, OSError) as error:
        # An exit code, as an exception would need this package on the other side.
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
