"""Models that Prefect's schedules wake and put to sleep, as their specs say."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prefect.settings import temporary_settings

from tasks.prefect_runs import remove_quiet_runs
from tests.e2e.conftest import lifecycle_program, process_engine
from tests.e2e.workplace import Workplace
from tests.flows.conftest import Serving
from tests.flows.requests import RECONCILE, end_as
from tests.prefect_server import PrefectServer
from tests.waiting import until

__all__ = ["lifecycle_program"]

pytestmark = [
    *(pytest.mark.server, pytest.mark.process),
    pytest.mark.usefixtures("deployed", "nothing_served"),
]

WAKE, SLEEP = "wake-model/wake", "sleep-model/sleep"
WORKDAYS = {"awake": "0 7 * * 1-5", "asleep": "0 20 * * *", "timezone": "Europe/Berlin"}


class Scheduled:
    """A model with a schedule, and what Prefect's server has of it."""

    def __init__(self, place: Workplace, server: PrefectServer, program: Path) -> None:
        self.place, self.server, self.name = place, server, place.named("tiny")
        self._engine = process_engine(program)

    def deploy(self, schedule: dict[str, str] | None) -> str:
        """Deploy it; what is printed."""
        ram = {"ram": "64MiB"}
        spec = self.place.spec("tiny", engine=self._engine, placement=ram, schedule=schedule)
        return self.place.run("deploy", spec, "--fleet", self.place.folder / "fleet.yaml").stdout

    def schedules(self, deployment: str) -> list[dict[str, Any]]:
        """Those of this model."""
        found = self.server.deployment(deployment)["schedules"]
        return [one for one in found if one["parameters"].get("name") == self.name]

    def times(self) -> dict[str, list[tuple[str, str]]]:
        """When it is woken and put to sleep."""
        return {
            deployment: [
                (one["schedule"]["cron"], one["schedule"]["timezone"])
                for one in self.schedules(deployment)
            ]
            for deployment in (WAKE, SLEEP)
        }


@pytest.fixture
def scheduled(workplace: Workplace, prefect_server: PrefectServer, lifecycle_program: Path) -> Any:
    model = Scheduled(workplace, prefect_server, lifecycle_program)
    yield model
    workplace.run("retire", model.name, code=None)


BOTH = {WAKE: [("0 7 * * 1-5", "Europe/Berlin")], SLEEP: [("0 20 * * *", "Europe/Berlin")]}
NONE: dict[str, list[tuple[str, str]]] = {WAKE: [], SLEEP: []}


def test_the_schedules_of_a_model_follow_its_spec_until_it_is_retired(scheduled: Scheduled) -> None:
    scheduled.deploy(WORKDAYS)
    assert scheduled.times() == BOTH
    (wake,) = scheduled.schedules(WAKE)
    assert "fleet" not in wake["parameters"]
    assert "unchanged" in scheduled.deploy({"awake": "0 6 * * *"}).lower()
    assert scheduled.times() == {WAKE: [("0 6 * * *", "UTC")], SLEEP: []}
    scheduled.deploy(None)
    assert scheduled.times() == NONE
    scheduled.deploy(WORKDAYS)
    scheduled.place.run("retire", scheduled.name)
    assert scheduled.times() == NONE


def test_reconciling_brings_back_what_was_lost_and_ends_what_has_no_model(
    scheduled: Scheduled,
) -> None:
    server, fleet = scheduled.server, scheduled.place.folder / "fleet.yaml"
    scheduled.deploy(WORKDAYS)
    identity = server.deployment(WAKE)["id"]
    (wake,) = scheduled.schedules(WAKE)
    server.delete(f"/deployments/{identity}/schedules/{wake['id']}")
    foreign = {"slug": "moorage.of-another-ledger", "schedule": {"cron": "0 1 * * *"}}
    named = {"slug": "by-hand", "schedule": {"cron": "0 2 * * *"}}
    server.post(f"/deployments/{identity}/schedules", [foreign, named])
    scheduled.place.run("reconcile", "--fleet", fleet)
    assert scheduled.times() == BOTH
    slugs = {one["slug"] for one in server.deployment(WAKE)["schedules"]}
    assert slugs == {f"moorage.{scheduled.name}", "moorage.of-another-ledger", "by-hand"}


def test_serving_keeps_the_schedules_and_their_runs_wake_the_model_and_put_it_to_sleep(
    scheduled: Scheduled,
) -> None:
    scheduled.deploy(WORKDAYS)
    with Serving(scheduled.place):
        assert scheduled.times() == BOTH
        (wake,), (sleep,) = scheduled.schedules(WAKE), scheduled.schedules(SLEEP)
        slept = scheduled.server.run(SLEEP, sleep["parameters"])
        assert slept["state"]["type"] == "COMPLETED", scheduled.server.log(slept["id"])
        assert scheduled.place.releases()[0].state == "asleep"
        woken = scheduled.server.run(WAKE, wake["parameters"])
        assert woken["state"]["type"] == "COMPLETED", scheduled.server.log(woken["id"])
        assert scheduled.place.releases()[0].state == "running"


def test_scheduled_reconciles_that_did_nothing_are_not_kept(
    prefect_server: PrefectServer,
) -> None:
    deployment = prefect_server.deployment(RECONCILE)["id"]
    # The last ones: the first are due within minutes, and something may serve them by then.
    prefect_server.post(f"/deployments/{deployment}/schedule", {"min_runs": 30})
    query = {"deployments": {"id": {"any_": [deployment]}}}
    last = {"sort": "EXPECTED_START_TIME_DESC", "limit": 4}
    to_come = query | {"flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}}} | last
    overdue, *due = [run["id"] for run in prefect_server.post("/flow_runs/filter", to_come)]
    by_hand = prefect_server.ask(RECONCILE, {}).json()["id"]
    states = ("Unchanged", "Completed", "Skipped", "Unchanged")
    before = datetime.now(UTC)
    for run, state in zip((*due, by_hand), states, strict=True):
        end_as(prefect_server, run, state)
    changed, late = due[1], {"type": "SCHEDULED", "name": "Late"}
    prefect_server.post(f"/flow_runs/{overdue}/set_state", {"state": late, "force": True})

    def kept() -> set[str]:
        found = prefect_server.post("/flow_runs/filter", query)
        return {run["id"] for run in found} & {*due, by_hand, overdue}

    after = datetime.now(UTC) + timedelta(minutes=1)
    with temporary_settings(prefect_server.settings):
        asyncio.run(remove_quiet_runs(before))
        assert kept() == {*due, by_hand, overdue}, "they have ended since"

        def removed() -> bool:
            asyncio.run(remove_quiet_runs(after))  # what is refused, the next one does
            return kept() == {changed, by_hand}

        until(removed)
