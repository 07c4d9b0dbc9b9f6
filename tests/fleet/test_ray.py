"""Workers of a Ray cluster look at hosts and supply them; engines are started from here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.conftest import container_engine, prefect_server, tiny_llama, workplace
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.fleet.fleet import TestFleet
from tests.fleet.sites import containers, write_fleet
from tests.prefect_server import PrefectServer
from tests.waiting import until

pytest.importorskip("prefect_ray", reason="prefect-ray is missing: pip install 'moorage[ray]'")
pytest.importorskip("ray", reason="ray is missing: pip install 'moorage[ray]'")

pytestmark = [pytest.mark.server, pytest.mark.process]

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


@pytest.fixture
def ray(prefect_server: PrefectServer) -> dict[str, str]:
    """What makes a flow use a Ray that lives as long as its run."""
    return {
        **prefect_server.environment,
        "MOORAGE_TASK_RUNNER": "ray",
        "PYTHONPATH": str(REPOSITORY),
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    }


@pytest.fixture
def place(workplace: Workplace, equipped: TestFleet, ray: dict[str, str]) -> Iterator[Workplace]:
    workplace.environment.update({**ray, "MOORAGE_HOME": str(workplace.home)})
    yield workplace
    for host in equipped.hosts:
        assert containers(host) == []


def test_what_is_done_for_another_machine_is_done_by_ray_and_failures_come_back_whole(
    ray: dict[str, str],
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WHERE],
        env={**os.environ, **ray},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["here"] == answer["mine"] != answer["there"]
    assert answer["failure"] == ["disk-full", "no room", "the end"]


def test_a_cluster_that_is_not_there_is_a_failure_with_a_cause(
    workplace: Workplace, ray: dict[str, str]
) -> None:
    workplace.environment.update({**ray, "RAY_ADDRESS": "ray://127.0.0.1:1"})
    answer = workplace.run("deploy", workplace.spec(), code=8).stderr
    assert "server-unavailable" in answer
    assert "the Ray cluster ray://127.0.0.1:1 cannot be used" in answer
    assert "Check RAY_ADDRESS" in answer


@pytest.mark.docker
@pytest.mark.fleet
def test_a_model_is_deployed_to_two_hosts_with_ray(
    place: Workplace, equipped: TestFleet, lifecycle_image: str, prefect_server: PrefectServer
) -> None:
    write_fleet(place, equipped, "tls")
    spec = place.spec(
        engine=container_engine(lifecycle_image),
        placement={"accelerators": 0, "ram": "64MiB"},
        replicas=2,
    )
    release = place.json("deploy", spec)["release"]
    hosts = sorted({workload["host"] for workload in release["workloads"]})
    assert len(hosts) == 2
    steps = {step["name"]: step["summary"] for step in release["steps"]}
    for host in hosts:
        assert "verified, in " in steps[f"stage on {host}"]
        assert steps[f"image on {host}"]
    tasks = {f"survey {host.name}" for host in equipped.hosts}
    tasks |= {f"{what} on {host}" for what in ("pull", f"launch {release['id']}") for host in hosts}
    until(lambda: tasks <= _completed(prefect_server, release["flow_run_id"]))
    place.run("retire", place.named("tiny"))
    assert place.is_clean()


def _completed(server: PrefectServer, flow_run: str) -> set[str]:
    """Tasks of a flow run that the server has as completed; it writes them each second."""
    content: dict[str, Any] = {"flow_runs": {"id": {"any_": [flow_run]}}}
    runs = server.post("/task_runs/filter", content)
    return {run["name"] for run in runs if run["state"]["type"] == "COMPLETED"}
