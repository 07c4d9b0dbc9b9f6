"""Two sites: a queue and a worker for each, one Prefect server and one ledger, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import process_engine
from tests.flows.conftest import deploy_all
from tests.flows.requests import NEVER_READY, Parameters
from tests.prefect_server import PrefectApi
from tests.team.conftest import Team, TeamPlace, Worker
from tests.waiting import until

pytestmark = [pytest.mark.server, pytest.mark.process]

DEPLOY, PLAN = "deploy-model/deploy", "plan-model/plan"
SITES = ("default", "site-a")


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

    def taken(self, flow_run: str) -> tuple[str, str, list[str]]:
        """Work pool and queue that a run went to, and the sites whose workers took it."""
        run = self.api.get(f"/flow_runs/{flow_run}")
        takers = [site for site, worker in self.workers.items() if worker.took(flow_run)]
        return run["work_pool_name"], run["work_queue_name"], takers

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
    deploy_all(place.environment)
    # Else a worker begins a reconcile each minute, which takes as much of the machine as a deploy.
    reconcile = team.api.deployment("reconcile-fleet/reconcile")["id"]
    team.api.post(f"/deployments/{reconcile}/pause_deployment", {})
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


def test_what_goes_to_a_site_always_has_a_deployment_of_its_own(sites: Sites) -> None:
    deployment = sites.api.deployment("deploy-model/deploy-site-a")
    assert deployment["work_queue_name"] == "site-a"
    assert deployment["enforce_parameter_schema"] is True
    assert deployment["schedules"] == []
    wrong = sites.parameters("nowhere", source="file:///there/is/no/model")
    run = sites.api.run("deploy-model/deploy-site-a", wrong)
    assert run["state"]["type"] == "FAILED"
    assert sites.taken(run["id"])[-1] == ["site-a"]


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
    assert sites.taken(run) == ("moorage", "site-a", ["site-a"])
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
    assert sites.taken(first) == ("moorage", "default", ["default"])

    second = sites.send(DEPLOY, "site-a", "contended", engine=NEVER_READY)
    serves = process_engine(lifecycle_program)
    other = sites.send(DEPLOY, "site-a", "other", engine=serves)
    assert sites.ended(other)[0] == "COMPLETED", "another name has to wait for nobody"
    kind, reply = sites.ended(second)
    assert kind == "FAILED"
    assert f"Another flow is working on this model: {name} is held by flow run {first}" in reply
    waits = f"waits: {name} is held by flow run {first}"
    until(lambda: waits in sites.api.log(second))
    assert sites.api.get(f"/flow_runs/{first}")["state"]["type"] == "RUNNING"

    third = sites.send(DEPLOY, "site-a", "contended", lock_wait_seconds=600, engine=serves)
    until(lambda: waits in sites.api.log(third), unless=lambda: sites.end(third))
    sites.api.cancel(first)
    assert sites.ended(third)[0] == "COMPLETED", "whoever waits goes on as soon as it may"
    assert sites.ended(first)[0] == "CANCELLED"
    assert [row.state for row in sites.place.releases("contended")] == ["running", "error"]
    for one in ("contended", "other"):
        sites.place.run("retire", sites.place.named(one))
    assert sites.place.is_clean()


def test_a_run_copies_no_folder_of_its_worker(sites: Sites) -> None:
    for worker in sites.workers.values():
        log = worker.log.read_text()
        assert "submitting flow run" in log
        assert "Downloading flow code" not in log


def _is_starting(sites: Sites, name: str) -> bool:
    rows = sites.place.releases(name)
    return bool(rows and rows[0].state == "starting" and sites.place.processes())
