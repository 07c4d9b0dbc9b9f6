"""Two sites: a queue and a worker for each, one Prefect server and one ledger, in PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.conftest import process_engine
from tests.e2e.workplace import REPOSITORY
from tests.flows.requests import Parameters
from tests.prefect_server import PrefectApi
from tests.team.conftest import Team, TeamPlace, Worker
from tests.waiting import until

pytestmark = [pytest.mark.server, pytest.mark.process]

DEPLOY, PLAN = "deploy-model/deploy", "plan-model/plan"
SITES = ("default", "site-a")
NEVER_READY = {
    "name": "transformers",
    "runtime": "process",
    "command": ["sleep", "600"],
}


class Sites:
    """A team with a worker at each of two sites."""

    def __init__(self, team: Team, place: TeamPlace, workers: dict[str, Worker]) -> None:
        self.api: PrefectApi = team.api
        self.place, self.workers = place, workers
        self.parameters = Parameters(place)

    def send(
        self, flow: str, site: str, name: str, lock_wait_seconds: int = 8, **fields: Any
    ) -> str:
        """Ask for a run at a site."""
        env = {"MOORAGE_LOCK_WAIT_SECONDS": str(lock_wait_seconds)}
        request = self.api.ask(
            flow,
            self.parameters(name, **fields),
            work_queue_name=site,
            job_variables={"env": env},
        )
        assert request.status_code == 201, request.text
        return str(request.json()["id"])

    def end(self, flow_run: str) -> tuple[str, str] | None:
        """How a run has ended, if it has."""
        return self.ended(flow_run) if self.api.has_ended(flow_run) else None

    def ended(self, flow_run: str) -> tuple[str, str]:
        state = self.api.ended(flow_run)["state"]
        return state["type"], state["message"] or ""


@pytest.fixture(scope="module")
def sites(
    team: Team, tmp_path_factory: pytest.TempPathFactory, tiny_llama: Path
) -> Iterator[Sites]:
    started = team.run("up", "--no-serve")
    assert started.returncode == 0, started.stderr
    place = TeamPlace(tmp_path_factory.mktemp("sites"), tiny_llama, team)
    team.api.post("/work_pools/", {"name": "moorage", "type": "process"})
    deploy = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"]
    given = {**place.environment, "PWD": str(REPOSITORY)}
    subprocess.run(deploy, cwd=REPOSITORY, env=given, check=True, capture_output=True)
    with ExitStack() as ending:
        ending.callback(team.run, "down")
        ending.callback(place.close)
        workers = {}
        for site in SITES:
            workers[site] = Worker(place, site, MOORAGE_SITE=site)
            ending.callback(workers[site].stop)
        for worker in workers.values():
            worker.wait()
        yield Sites(team, place, workers)


@pytest.mark.parametrize("site", SITES)
def test_a_run_goes_to_the_worker_of_the_site_it_was_sent_to(sites: Sites, site: str) -> None:
    run = sites.send(PLAN, site, f"plan-{site}", engine=NEVER_READY)
    assert sites.ended(run)[0] == "COMPLETED"
    assert [name for name, worker in sites.workers.items() if worker.took(run)] == [site]
    found = sites.api.get(f"/flow_runs/{run}")
    assert (found["work_pool_name"], found["work_queue_name"]) == ("moorage", site)


def test_a_run_copies_no_folder_of_its_worker(sites: Sites) -> None:
    for worker in sites.workers.values():
        log = worker.log.read_text()
        assert "submitting flow run" in log
        assert "Downloading flow code" not in log


def test_what_goes_to_a_site_always_has_a_deployment_of_its_own(sites: Sites) -> None:
    deployment = sites.api.deployment("deploy-model/deploy-site-a")
    assert deployment["work_queue_name"] == "site-a"
    assert deployment["enforce_parameter_schema"] is True
    assert deployment["schedules"] == []
    wrong = sites.parameters("nowhere", source="file:///there/is/no/model")
    run = sites.api.run("deploy-model/deploy-site-a", wrong)
    assert run["state"]["type"] == "FAILED"
    assert sites.workers["site-a"].took(run["id"])
    assert not sites.workers["default"].took(run["id"])


def test_a_worker_places_on_the_hosts_of_its_site_alone(sites: Sites) -> None:
    (host,) = sites.parameters("x")["fleet"]["hosts"]
    elsewhere = {
        "name": "far",
        "address": "tcp://127.0.0.1:1",
        "bind": "10.255.0.1",
        "labels": {"site": "site-b"},
    }
    here = {**host, "labels": {"site": "site-a"}}
    request = sites.parameters("of-a-site", engine=NEVER_READY)
    request["fleet"] = {"hosts": [here, elsewhere]}
    answer = sites.api.ask(PLAN, request, work_queue_name="site-a")
    run = answer.json()["id"]
    assert sites.ended(run)[0] == "COMPLETED"
    table = sites.api.artifacts(run)[f"placement-{sites.place.named('of-a-site')}"]["data"]
    assert "local" in table
    assert "far" not in table

    request["fleet"] = {"hosts": [elsewhere]}
    answer = sites.api.ask(PLAN, request, work_queue_name="site-a")
    kind, reply = sites.ended(answer.json()["id"])
    assert kind == "FAILED"
    assert "this worker is at the site site-a, and the fleet has hosts at site-b only" in reply


def test_one_flow_of_a_name_at_a_time_whichever_worker_runs_it(
    sites: Sites, lifecycle_program: Path
) -> None:
    name = sites.place.named("contended")
    first = sites.send(DEPLOY, "default", "contended", engine=NEVER_READY)
    until(lambda: _is_starting(sites, "contended"), unless=lambda: sites.end(first))

    second = sites.send(DEPLOY, "site-a", "contended", engine=NEVER_READY)
    other = sites.send(DEPLOY, "site-a", "other", engine=process_engine(lifecycle_program))
    assert sites.ended(other)[0] == "COMPLETED", "another name has to wait for nobody"
    kind, reply = sites.ended(second)
    assert kind == "FAILED"
    assert f"Another flow is working on this model: {name} is held by flow run {first}" in reply
    until(lambda: f"waits: {name} is held by flow run {first}" in sites.api.log(second))
    assert sites.api.get(f"/flow_runs/{first}")["state"]["type"] == "RUNNING"

    _kill(sites.place, first)
    third = sites.send(DEPLOY, "site-a", "contended", engine=process_engine(lifecycle_program))
    assert sites.ended(third)[0] == "COMPLETED", "a holder that was killed holds nothing"
    states = [row.state for row in sites.place.releases("contended")]
    assert states == ["running", "error"]
    for one in ("contended", "other"):
        sites.place.run("retire", sites.place.named(one))
    assert sites.place.is_clean()


def test_whoever_waits_goes_on_as_soon_as_the_other_one_has_ended(
    sites: Sites, lifecycle_program: Path
) -> None:
    first = sites.send(DEPLOY, "default", "queued", engine=NEVER_READY)
    until(lambda: _is_starting(sites, "queued"), unless=lambda: sites.end(first))
    engine = process_engine(lifecycle_program)
    second = sites.send(DEPLOY, "site-a", "queued", lock_wait_seconds=600, engine=engine)
    until(lambda: "waits: " in sites.api.log(second), unless=lambda: sites.end(second))
    sites.api.cancel(first)
    assert sites.ended(second)[0] == "COMPLETED"
    assert sites.ended(first)[0] == "CANCELLED"
    assert [row.state for row in sites.place.releases("queued")] == ["running", "error"]
    sites.place.run("retire", sites.place.named("queued"))
    assert sites.place.is_clean()


def _is_starting(sites: Sites, name: str) -> bool:
    rows = sites.place.releases(name)
    return bool(rows and rows[0].state == "starting" and sites.place.processes())


def _kill(place: TeamPlace, flow_run: str) -> None:
    """Kill the process of a flow run, as a power cut does: nothing is undone."""
    killed = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("PREFECT__FLOW_RUN_ID") == flow_run
        except psutil.Error:
            continue
        if ours and process.pid != os.getpid() and process not in place.processes():
            process.send_signal(signal.SIGKILL)
            killed.append(process)
    assert killed
