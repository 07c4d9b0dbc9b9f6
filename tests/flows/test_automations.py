"""The triggers of prefect.yaml on a real server: what sets off which run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from ruamel.yaml import YAML

from moorage.adapters.ledger import Ledger
from tasks.repair import LOCK
from tests.e2e.conftest import lifecycle_program, process_engine
from tests.e2e.workplace import Workplace
from tests.prefect_server import ENDED, PrefectServer
from tests.waiting import until

__all__ = ["lifecycle_program"]

pytestmark = [pytest.mark.server, pytest.mark.process]

DIED, TELLS = "moorage-redeploy-what-died", "moorage-tell-what-needs-a-person"
LEFT, UNSEEN, MUTE = (
    f"moorage-reconcile-what-{what}"
    for what in ("a-run-left", "is-out-of-sight", "does-not-answer")
)
QUIET_SECONDS = 10.0
"""How long a trigger of `reconcile` rests once it has fired."""


def automations(server: PrefectServer) -> dict[str, dict[str, Any]]:
    found = server.post("/automations/filter", {})
    names = [one["name"] for one in found]
    assert sorted(names) == sorted(set(names)), "deploying and serving leave one of each"
    return {one["name"]: one for one in found if one["name"].startswith("moorage-")}


def failed(model: str, before: str) -> dict[str, Any]:
    """The event of a release that went from a state to `error`."""
    resource = {
        "prefect.resource.id": f"moorage.release.{model}.v1",
        "moorage.state": "error",
        "moorage.before": before,
    }
    return {
        "id": str(uuid4()),
        "occurred": datetime.now(UTC).isoformat(),
        "event": "moorage.release.error",
        "resource": resource,
        "payload": {"model": model},
    }


def set_off(server: PrefectServer, flow: str) -> list[dict[str, Any]]:
    """The runs of a flow that automations have begun, oldest first."""
    query = {"flows": {"name": {"any_": [flow]}}, "sort": "EXPECTED_START_TIME_ASC"}
    found: list[dict[str, Any]] = server.post("/flow_runs/filter", query)
    return [one for one in found if (one["created_by"] or {}).get("type") == "AUTOMATION"]


def tell(server: PrefectServer, event: str, said_by: str, times: int = 1) -> None:
    """Events about a release, all at once, as a flow of that name emits them."""
    content = {
        "occurred": datetime.now(UTC).isoformat(),
        "event": f"moorage.release.{event}",
        "resource": {"prefect.resource.id": "moorage.release.away.v1"},
        "related": [
            {
                "prefect.resource.id": f"prefect.flow.{uuid4()}",
                "prefect.resource.role": "flow",
                "prefect.resource.name": said_by,
            }
        ],
    }
    every = [content | {"id": str(uuid4())} for _ in range(times)]
    server.post("/events", every)


@pytest.fixture(scope="module", autouse=True)
def module_start() -> datetime:
    """When this module began: runs of earlier ones may be left on the server, never to end."""
    return datetime.now(UTC)


@pytest.fixture
def unscheduled(served: PrefectServer, module_start: datetime) -> Iterator[PrefectServer]:
    """A server on which only events make it reconcile: the schedule rests."""
    deployment = served.deployment("reconcile-fleet/reconcile")
    path = f"/deployments/{deployment['id']}/schedules/{deployment['schedules'][0]['id']}"
    served.patch(path, {"active": False})
    flows = {"name": {"any_": ["reconcile-fleet"]}}
    under_way = {
        "state": {"type": {"not_any_": sorted(ENDED)}},
        "expected_start_time": {"after_": module_start.isoformat()},
    }
    query = {"flows": flows, "flow_runs": under_way}
    until(lambda: not served.post("/flow_runs/filter", query))
    yield served
    served.patch(path, {"active": True})


def test_there_is_one_of_each_and_what_acts_is_switched_off(served: PrefectServer) -> None:
    def enabled() -> dict[str, bool]:
        return {name: one["enabled"] for name, one in automations(served).items()}

    until(lambda: len(enabled()) == 5)
    assert enabled() == {DIED: False, TELLS: True, LEFT: True, UNSEEN: True, MUTE: True}


def test_its_schedule_alone_makes_it_reconcile(served: PrefectServer) -> None:
    def scheduled() -> list[str]:
        flows = {"name": {"any_": ["reconcile-fleet"]}}
        states = {"state": {"type": {"any_": ["COMPLETED"]}}}
        found = served.post("/flow_runs/filter", {"flows": flows, "flow_runs": states})
        return [one["id"] for one in found if one["auto_scheduled"]]

    until(scheduled)


def test_a_release_that_ran_is_redeployed_and_one_that_never_ran_is_not(
    served: PrefectServer,
) -> None:
    died = until(lambda: automations(served).get(DIED))
    # One of our own, for that of the file is made again while serving begins.
    own = {key: died[key] for key in ("description", "trigger", "actions")}
    switched_on = served.post("/automations/", {**own, "name": "switched-on", "enabled": True})

    def begun() -> list[dict[str, Any]]:
        # Prefect knows a new automation only some time after it has answered.
        served.post("/events", [failed("never-ran", "starting"), failed("died-once", "running")])
        return set_off(served, "redeploy-models")

    runs = until(begun, pause=2)
    assert {tuple(one["parameters"]["names"]) for one in runs} == {("died-once",)}
    ended = served.ended(runs[0]["id"])
    assert "no model that runs or sleeps is named died-once" in ended["state"]["message"]
    served.delete(f"/automations/{switched_on['id']}")


def test_a_run_that_is_killed_is_followed_by_a_reconcile(
    unscheduled: PrefectServer, workplace: Workplace, lifecycle_program: Path
) -> None:
    served = unscheduled
    until(lambda: LEFT in automations(served))
    spec = {
        "name": workplace.named("killed"),
        "source": f"file://{workplace.model}",
        "engine": process_engine(lifecycle_program, "deaf"),
    }
    fleet = YAML(typ="safe").load(workplace.folder / "fleet.yaml")
    created = served.ask("deploy-model/deploy", {"spec": spec, "fleet": fleet}).json()
    until(workplace.running, unless=lambda: served.has_ended(created["id"]))
    before = len(set_off(served, "reconcile-fleet"))
    kill_run(workplace)
    assert served.ended(created["id"])["state"]["type"] == "CRASHED"
    run = until(lambda: set_off(served, "reconcile-fleet")[before:])[0]
    assert served.ended(run["id"])["state"]["type"] == "COMPLETED"
    until(lambda: [row.state for row in workplace.releases("killed")] == ["error"])
    until(workplace.is_clean)


def test_what_is_out_of_sight_or_mute_is_looked_at_once_and_no_reconcile_sets_off_a_chain(
    unscheduled: PrefectServer, workplace: Workplace
) -> None:
    served = unscheduled
    until(lambda: {UNSEEN, MUTE} <= automations(served).keys())
    before = len(set_off(served, "reconcile-fleet"))

    def further() -> int:
        return len(set_off(served, "reconcile-fleet")) - before

    tell(served, "unreachable", said_by="reconcile-fleet")
    with Ledger(f"sqlite:///{workplace.home / 'ledger.db'}").locks.holding(
        LOCK, wait_seconds=0, note="another reconcile"
    ):
        tell(served, "unreachable", said_by="deploy-model")
        until(lambda: further() == 1)
        ended = served.ended(set_off(served, "reconcile-fleet")[-1]["id"])
        assert ended["state"]["name"] == "Skipped"
        assert "another reconcile" in ended["state"]["message"]
    tell(served, "unresponsive", said_by="reconcile-fleet", times=3)
    until(lambda: further() == 2)
    served.ended(set_off(served, "reconcile-fleet")[-1]["id"])
    time.sleep(QUIET_SECONDS)
    assert further() == 2, "what a reconcile says sets off one more, and no chain"


def kill_run(workplace: Workplace) -> None:
    """Kill the flow run that has started an engine, as the kernel does when memory runs out."""
    supervisors = [one for one in workplace.processes() if "supervisor.py" in str(one.cmdline())]
    for supervisor in supervisors:
        run = supervisor.parent()
        assert run
        assert "forkserver" in str(run.cmdline())
        run.kill()
