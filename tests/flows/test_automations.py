"""The triggers of prefect.yaml on a real server: what sets off which run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.flows.test_approval import until
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.server, pytest.mark.process]

DIED, TELLS = "moorage-redeploy-what-died", "moorage-tell-what-needs-a-person"


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


def test_there_is_one_of_each_and_what_acts_is_switched_off(served: PrefectServer) -> None:
    def enabled() -> dict[str, bool]:
        return {name: one["enabled"] for name, one in automations(served).items()}

    until(lambda: len(enabled()) == 2)
    assert enabled() == {DIED: False, TELLS: True}


def test_a_release_that_ran_is_redeployed_and_one_that_never_ran_is_not(
    served: PrefectServer,
) -> None:
    died = until(lambda: automations(served).get(DIED))
    # One of our own, for that of the file is made anew while serving begins.
    own = {key: died[key] for key in ("description", "trigger", "actions")}
    switched_on = served.post("/automations/", {**own, "name": "switched-on", "enabled": True})
    httpx.post(
        f"{served.url}/events",
        json=[failed("never-ran", "starting"), failed("died-once", "running")],
        timeout=30,
    ).raise_for_status()

    def runs() -> list[dict[str, Any]]:
        flow = {"name": {"any_": ["redeploy-models"]}}
        found: list[dict[str, Any]] = served.post("/flow_runs/filter", {"flows": flow})
        return [one for one in found if one["created_by"]["type"] == "AUTOMATION"]

    until(runs)
    assert [one["parameters"]["names"] for one in runs()] == [["died-once"]]
    ended = served.ended(runs()[0]["id"])
    assert "nothing serves died-once" in ended["state"]["message"]
    httpx.delete(f"{served.url}/automations/{switched_on['id']}", timeout=30).raise_for_status()
