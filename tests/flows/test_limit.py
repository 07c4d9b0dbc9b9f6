"""How many runs of `moorage serve` go on at once, and that no limit of Prefect's keeps any away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from flows.serving import places_of
from moorage.adapters.prefect.deployment_file import deployments_of
from tests.e2e.conftest import lifecycle_program, process_engine
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.flows.conftest import Serving
from tests.flows.requests import RECONCILE, end_as
from tests.prefect_server import PrefectServer
from tests.waiting import until

__all__ = ["lifecycle_program"]

DEPLOY = "deploy-model/deploy"


def test_deploys_take_no_places_from_reconciles_or_from_what_people_wait_for() -> None:
    places: dict[int, set[str]] = {}
    for one in deployments_of(REPOSITORY / "prefect.yaml"):
        places.setdefault(places_of(one.tags), set()).add(one.name)
    assert places[0] == {"reconcile"}
    forms = {"deploy", "deploy-quick", "deploy-by-name", "deploy-site-a"}
    assert places[1] == {*forms, "apply", "redeploy", "watch-drift"}
    assert {"retire", "rollback", "wake", "sleep", "notify", "plan"} <= places[2]


@pytest.mark.server
@pytest.mark.process
@pytest.mark.usefixtures("deployed", "nothing_served")
def test_a_deploy_that_waits_for_a_person_keeps_no_reconcile_away_and_old_limits_are_removed(
    prefect_server: PrefectServer, workplace: Workplace, lifecycle_program: Path
) -> None:
    fleet = YAML(typ="safe").load(workplace.folder / "fleet.yaml")
    spec = {
        "name": workplace.named("waits"),
        "source": f"file://{workplace.model}",
        "engine": process_engine(lifecycle_program),
        "redeploy": {"approval": "required"},
    }
    killed = with_old_limit(prefect_server, RECONCILE)
    with Serving(workplace, "--limit", "1"):
        until(lambda: not prefect_server.deployment(RECONCILE)["global_concurrency_limit"])
        asked = prefect_server.ask(DEPLOY, {"spec": spec, "fleet": fleet}).json()
        prefect_server.until(asked["id"], {"PAUSED"})
        reconciled = prefect_server.run(RECONCILE, {"fleet": fleet})
        assert reconciled["state"]["type"] == "COMPLETED"
        retired = prefect_server.run("retire-model/retire", {"name": workplace.named("none")})
        assert retired["state"]["type"] == "FAILED", "it has begun, and there is no such model"
        workplace.run("approve", spec["name"], "--refuse")
        assert prefect_server.ended(asked["id"])["state"]["type"] == "FAILED"
    end_as(prefect_server, killed, "Unchanged")


def with_old_limit(server: PrefectServer, deployment: str) -> str:
    """Limit a deployment as an earlier release did, and take its only place with a killed run."""
    identity = server.deployment(deployment)["id"]
    options: dict[str, Any] = {"collision_strategy": "CANCEL_NEW"}
    server.patch(
        f"/deployments/{identity}", {"concurrency_limit": 1, "concurrency_options": options}
    )
    killed = server.ask(deployment, {}).json()["id"]
    for state in ("PENDING", "RUNNING"):
        server.post(f"/flow_runs/{killed}/set_state", {"state": {"type": state}})
    further = server.ask(deployment, {}).json()["id"]
    server.post(f"/flow_runs/{further}/set_state", {"state": {"type": "PENDING"}})
    assert server.get(f"/flow_runs/{further}")["state"]["type"] == "CANCELLED"
    return str(killed)
