"""The manifest for Kubernetes is valid, and its containers give the bytes of one machine."""

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


def manifest(scenario: str) -> list[dict[str, Any]]:
    lab = str(playrate_lab.find_lab())
    command = [lab, "jobs", scenario, "--set", "path.loss=gilbert(0.1%,20%)", "--shards", "4", "--cores", "2"]
    options = ["--out", "all", "--lab", lab, "--name", "few", "--image", "registry/lab:1", "--claim", "runs"]
    done = subprocess.run([*command, "--format", "kubernetes", *options], capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(done.stdout))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schemas_of_kubernetes_find_no_fault(scenario: str, version: str) -> None:
    jobs = manifest(scenario)
    assert len(jobs) == 2
    for job in jobs:
        kubernetes_validate.validate(job, version, strict=True)
        wrong = {**job, "spec": {**job["spec"], "completionMod": "Indexed"}}
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, version, strict=True)


def start(job: dict[str, Any], **variables: str) -> None:
    """Run the job's container as a pod does, in the current directory in place of the volume."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert [container["image"], container["workingDir"]] == ["registry/lab:1", "/work"]
    subprocess.run(container["command"] + container["args"], env={**os.environ, **variables}, check=True)


def test_the_pods_of_all_indices_and_the_merge_give_the_bytes_of_one_machine(scenario: str) -> None:
    array, merge = manifest(scenario)
    assert array["spec"]["completionMode"] == "Indexed"
    assert merge["spec"]["suspend"] is True
    for index in range(array["spec"]["completions"]):
        start(array, JOB_COMPLETION_INDEX=str(index))
    # A pod of the same index, as Kubernetes may start it again.
    start(array, JOB_COMPLETION_INDEX="2")
    start(merge)
    playrate_lab.run(scenario, settings={"path.loss": "gilbert(0.1%,20%)"}, out="one")
    assert Path("all/runs.jsonl").read_bytes() == Path("one/runs.jsonl").read_bytes()
