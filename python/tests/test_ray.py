"""Two nodes of a Ray cluster give the bytes of one machine."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import playrate_lab
from playrate_lab import BadInputError, LabError

#: Bytes of each node's object store; the smallest that Ray accepts is 75 MiB.
STORE = 80 * 1024 * 1024


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Start two nodes of two cores each, and connect to them."""
    node = {"num_cpus": 2, "object_store_memory": STORE}
    # A node that is lost is noticed after two seconds.
    checks = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
    head = {**node, "include_dashboard": False, "_system_config": checks}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    cluster.add_node(**node)
    ray.init(address=cluster.address, log_to_driver=False)
    # The first task of a node waits for its worker to start; meanwhile the other node could make all shards.
    nodes = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in ray.nodes() for _ in range(2)]
    ray.get([ray.remote(lambda: time.sleep(1)).options(scheduling_strategy=node).remote() for node in nodes])
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def files(directory: str) -> dict[str, bytes]:
    """Return the files of a directory of results, without its shards."""
    shutil.rmtree(Path(directory, "shards"), ignore_errors=True)
    paths = [path for path in Path(directory).rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


@pytest.mark.usefixtures("cluster")
def test_two_nodes_give_the_bytes_of_one_machine(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(ray.nodes()) == 2
    over = {"queue": ["0.5bdp", "1bdp"]}
    one = playrate_lab.run(scenario, over=over, trials=20, series="first", out="one")
    capsys.readouterr()
    many = playrate_lab.run(scenario, over=over, trials=20, series="first", out="many", engine="ray", shards=6)
    progress = capsys.readouterr().err
    assert "6 of 6 shards" in progress
    assert len(set(re.findall(r"by node (\w+)", progress))) == 2, progress
    assert many.equals(one)

    # A shard that was lost is made again, and nothing else.
    shutil.rmtree("many/shards/4")
    Path("many/runs.jsonl").unlink()
    with pytest.raises(BadInputError, match="many already holds results"):
        playrate_lab.run(scenario, over=over, trials=20, series="first", out="many", engine="ray", shards=6)
    playrate_lab.run(scenario, over=over, trials=20, series="first", out="many", engine="ray", shards=6, resume=True)
    assert "5 of 6 shards were finished before" in capsys.readouterr().err
    assert files("many") == files("one")


@pytest.mark.usefixtures("cluster")
def test_shards_of_another_plan_are_refused(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    few = playrate_lab.run(scenario, trials=1, out="out", engine="ray", shards=3)
    with pytest.raises(BadInputError, match="shards of other arguments"):
        playrate_lab.run(scenario, trials=2, out="out", engine="ray", resume=True)
    shutil.rmtree("out/shards")
    more = playrate_lab.run(scenario, trials=2, out="out", engine="ray", shards=3, resume=True)
    assert more.height == 2 * few.height
    err = capsys.readouterr().err
    assert "3 of 3 shards" in err
    assert "were finished before" not in err


@pytest.mark.usefixtures("cluster")
def test_as_many_shards_are_made_as_the_cluster_has_places_for(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = playrate_lab.sweep(scenario, {"rtt": ["20ms", "40ms"]}, engine="ray", cores=2)
    assert frame.height == 12
    assert "2 of 2 shards" in capsys.readouterr().err


@pytest.mark.usefixtures("cluster")
def test_errors_of_a_shard_name_it(scenario: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"shard ./2 on node .*`path.speed`"):
        playrate_lab.run(scenario, settings={"path.speed": 1}, engine="ray", shards=2)
    # Reports another version on its second call, which a node makes.
    other = tmp_path / "lab"
    other.write_text(
        '#!/bin/sh\nmkdir "$0.called" 2>/dev/null && exec echo lab 0.1.0\nexec echo lab 7.0.0\n', encoding="utf-8"
    )
    other.chmod(0o755)
    with pytest.raises(LabError, match=r"shard ./4 on node .*: .*lab has version 7.0.0"):
        playrate_lab.run(scenario, engine="ray", shards=4, lab=other)


def test_shards_of_a_node_that_is_lost_are_made_by_another(scenario: str, cluster: Cluster) -> None:
    """The last test of the cluster, because it leaves only one node."""
    lost = next(node for node in cluster.list_all_nodes() if not node.is_head())

    def lose() -> None:
        deadline = time.monotonic() + 60
        while not list(Path("many/shards").glob("*/runs.jsonl")) and time.monotonic() < deadline:
            time.sleep(0.01)
        cluster.remove_node(lost, allow_graceful=False)

    losing = threading.Thread(target=lose)
    losing.start()
    many = playrate_lab.run(scenario, trials=60, out="many", engine="ray", shards=12)
    losing.join()
    deadline = time.monotonic() + 30
    while [node["Alive"] for node in ray.nodes()].count(True) != 1:
        assert time.monotonic() < deadline, "the lost node still counts as alive"
        time.sleep(0.1)
    assert many.equals(playrate_lab.run(scenario, trials=60, out="one"))
    assert files("many") == files("one")
