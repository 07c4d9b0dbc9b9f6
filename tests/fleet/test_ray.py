"""Workers of a Ray cluster look at hosts and supply them; engines are started from here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import pytest

from tests.e2e.conftest import container_engine, prefect_server, tiny_llama, workplace
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.fleet.befalling import leaves_nothing
from tests.fleet.fleet import TestFleet
from tests.fleet.sites import described, write_fleet
from tests.prefect_server import PrefectServer
from tests.waiting import until

pytestmark = [
    pytest.mark.server,
    pytest.mark.process,
    # Importing them would take every process of a test run a second.
    pytest.mark.skipif(
        not (find_spec("prefect_ray") and find_spec("ray")),
        reason="prefect-ray or ray is missing: pip install '.[ray]'",
    ),
]

__all__ = ["prefect_server", "tiny_llama", "workplace"]

WHERE = """\
import asyncio, json, os
from prefect import flow
from moorage.common.failures import Failure
from tasks.map_hosts import HostCall, map_hosts
from tests.fleet.ray_tasks import where
from moorage.adapters.prefect.task_runner import task_runner

@flow(task_runner=task_runner(), persist_result=False)
async def ask() -> dict:
    calls = [HostCall(h, a, {"host": h}) for h, a in (("here", "local"), ("there", "tcp://127.1.0.1:1"))]
    here, there = await map_hosts(where, calls, 8)
    try:
        await map_hosts(where, [HostCall("wrong", "tcp://127.1.0.1:1", {"host": "wrong"})], 8)
    except Failure as failure:
        raised = [failure.cause, failure.detail, failure.log_tail]
    return {"mine": os.getpid(), "here": here, "there": there, "failure": raised}

print(json.dumps(asyncio.run(ask())))
"""


RAY = {
    "MOORAGE_TASK_RUNNER": "ray",
    "PYTHONPATH": str(REPOSITORY),
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}
"""What makes a flow use a Ray that lives as long as its run."""


def with_ray(words: list[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter of its own: what forks commands has imported no Ray."""
    return subprocess.run(
        words, env={**environment, **RAY}, capture_output=True, text=True, check=False
    )


def test_what_is_done_for_another_machine_is_done_by_ray_and_failures_come_back_whole(
    prefect_server: PrefectServer,
) -> None:
    done = with_ray([sys.executable, "-c", WHERE], os.environ | prefect_server.environment)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["here"] == answer["mine"] != answer["there"]
    assert answer["failure"] == ["disk-full", "no room", "the end"]


def test_a_cluster_that_is_not_there_is_a_failure_with_a_cause(workplace: Workplace) -> None:
    nobody = workplace.environment | {"RAY_ADDRESS": "ray://127.0.0.1:1"}
    answer = with_ray(workplace.argv("deploy", workplace.spec()), nobody)
    assert answer.returncode == 8
    assert "server-unavailable" in answer.stderr
    assert "the Ray cluster ray://127.0.0.1:1 cannot be used" in answer.stderr
    assert "Check RAY_ADDRESS" in answer.stderr


@pytest.mark.docker
@pytest.mark.fleet
def test_a_model_is_deployed_to_two_hosts_with_ray(
    place: Workplace, equipped: TestFleet, lifecycle_image: str, prefect_server: PrefectServer
) -> None:
    """Of two hosts: Ray starts a worker for each, which imports for seconds."""
    two = [described(equipped, host, "tls") for host in equipped.hosts[:2]]
    write_fleet(place, equipped, "tls", hosts=two)
    spec = place.spec(
        engine=container_engine(lifecycle_image),
        placement={"accelerators": 0, "ram": "64MiB"},
        replicas=2,
    )
    deployed = with_ray(place.argv("deploy", spec, "--json"), place.environment)
    assert deployed.returncode == 0, deployed.stderr
    release = json.loads(deployed.stdout)["release"]
    hosts = sorted({workload["host"] for workload in release["workloads"]})
    assert hosts == [host["name"] for host in two]
    steps = {step["name"]: step["summary"] for step in release["steps"]}
    for host in hosts:
        assert "verified, in " in steps[f"stage on {host}"]
        assert steps[f"image on {host}"]
    tasks = {f"survey {host}" for host in hosts}
    tasks |= {f"{what} on {host}" for what in ("pull", f"launch {release['id']}") for host in hosts}
    until(lambda: tasks <= _completed(prefect_server, release["flow_run_id"]))
    place.run("retire", place.named("tiny"))
    leaves_nothing(place, equipped)


def _completed(server: PrefectServer, flow_run: str) -> set[str]:
    """Tasks of a flow run that the server has as completed; it writes them each second."""
    content: dict[str, Any] = {"flow_runs": {"id": {"any_": [flow_run]}}}
    runs = server.post("/task_runs/filter", content)
    return {run["name"] for run in runs if run["state"]["type"] == "COMPLETED"}
