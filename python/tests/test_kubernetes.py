"""The template for Kubernetes is valid, and its pods give the rows of one machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

import playrate_lab

#: The oldest version that has all fields without a feature gate, and the newest that the schemas cover.
VERSIONS = ["1.29", kubernetes_validate.latest_version()]
TEMPLATE = Path(__file__).parents[2] / "packaging" / "kubernetes" / "lab-job.yaml"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schemas_of_kubernetes_find_no_fault(version: str) -> None:
    job = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))
    kubernetes_validate.validate(job, version, strict=True)
    wrong = {**job, "spec": {**job["spec"], "completionMod": "Indexed"}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, version, strict=True)


def edited(scenario: str) -> dict[str, Any]:
    """Return the job for four shards of a scenario, changed as the template says."""
    text = TEMPLATE.read_text(encoding="utf-8")
    for before, after in (
        ("completions: 64 ", "completions: 4 "),
        ("shards=64 ", "shards=4 "),
        ("set -- papers --trials 20 ", f"set -- {scenario} --set 'path.loss=gilbert(0.1%,20%)' "),
    ):
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    job: dict[str, Any] = yaml.safe_load(text)
    return job


def start(job: dict[str, Any], index: int) -> None:
    """Run the job's container as a pod does, in the current directory in place of the volume."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["workingDir"] == "/work"
    variables = {"JOB_COMPLETION_INDEX": str(index), "PATH": f"{Path.cwd() / 'bin'}:{os.environ['PATH']}"}
    subprocess.run(container["command"] + container["args"], env={**os.environ, **variables}, check=True)


def lines(directory: str) -> list[str]:
    return Path(directory, "runs.jsonl").read_text(encoding="utf-8").splitlines()


def test_the_pods_of_all_indices_give_the_rows_of_one_machine(scenario: str) -> None:
    Path("bin").mkdir()
    Path("bin/lab").symlink_to(playrate_lab.find_lab())
    job = edited(scenario)
    assert job["spec"]["completionMode"] == "Indexed"
    for index in range(job["spec"]["completions"]):
        start(job, index)
    # A second pod with the same index, because Kubernetes may start one again.
    start(job, 2)
    one = playrate_lab.run(scenario, settings={"path.loss": "gilbert(0.1%,20%)"}, out="one")
    rows = [row for shard in range(1, 5) for row in lines(f"lab-shards/{shard}")]
    assert sorted(rows) == sorted(lines("one"))
    assert playrate_lab.read(*Path("lab-shards").iterdir()).height == one.height
