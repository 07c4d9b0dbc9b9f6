"""The life of releases as flows lead them, and what Prefect hears of it."""

from __future__ import annotations

import os
import pwd
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import lifecycle_program, process_engine
from tests.e2e.workplace import Workplace
from tests.prefect_server import PrefectServer

__all__ = ["lifecycle_program"]

pytestmark = [pytest.mark.process, pytest.mark.server]

ARRIVE_SECONDS = 30
STARTED = ["analyzing", "scheduled", "downloading", "starting", "running"]


@pytest.fixture(scope="module")
def lives(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_llama: Path,
    lifecycle_program: Path,
    prefect_server: PrefectServer,
) -> Iterator[Workplace]:
    """One model: deployed, deployed again, broken, retired; and one that is not there."""
    place = Workplace(tmp_path_factory.mktemp("lives"), tiny_llama, prefect_server.environment)
    good = place.spec(engine=process_engine(lifecycle_program))
    place.run("deploy", good)
    assert place.json("deploy", good)["outcome"] == "unchanged"
    place.json("deploy", place.spec(engine=process_engine(lifecycle_program, "die")), code=6)
    missing = place.spec("missing", source=f"file://{place.folder / 'nothing'}")
    place.json("deploy", missing, code=4)
    place.run("retire", place.named("tiny"))
    yield place
    place.close()


def way(place: Workplace, release: str) -> list[str]:
    return [one["state"] for one in place.json("show", release)["states"]]


def test_a_release_goes_through_all_states_and_an_unchanged_deploy_begins_none(
    lives: Workplace,
) -> None:
    name = lives.named("tiny")
    assert way(lives, f"{name}.v1") == ["pending", *STARTED, "stopping", "stopped"]
    assert way(lives, f"{name}.v2") == ["pending", *STARTED[:-1], "error"]
    assert [row.number for row in lives.releases()] == [2, 1]
    assert lives.is_clean()


def test_a_model_that_cannot_be_found_leaves_a_record_of_it(lives: Workplace) -> None:
    [row] = lives.releases("missing")
    assert (row.state, row.cause, row.revision) == ("error", "source-missing", "")
    assert row.release
    assert row.release.failure
    assert "nothing" in row.release.failure.detail
    assert way(lives, row.id) == ["pending", "analyzing", "error"]
    log = lives.ledger.releases.transitions(row.id)
    assert [one.cause for one in log] == ["", "source-missing"]


def test_a_model_that_never_ran_is_retired_once(lives: Workplace) -> None:
    missing = lives.named("missing")
    messages = [lives.json("retire", missing)["message"] for _ in range(2)]
    assert messages == [f"{missing} is retired; it had failed", f"{missing} was not running"]
    assert missing not in lives.run("status", "--check").stdout


def test_every_transition_names_the_flow_run_that_made_it(
    lives: Workplace, prefect_server: PrefectServer
) -> None:
    shown = lives.json("show", f"{lives.named('tiny')}.v1")["states"]
    runs = [one["flow_run_id"] for one in shown]
    assert len(set(runs[:6])) == len(set(runs[6:])) == 1
    names = [prefect_server.get(f"/flow_runs/{run}")["name"] for run in (runs[0], runs[-1])]
    assert names == [f"deploy {lives.named('tiny')}", f"retire {lives.named('tiny')}"]
    assert shown[0]["flow_run_url"].endswith(f"/runs/flow-run/{runs[0]}")


def test_the_record_and_every_transition_name_who_typed_the_command(lives: Workplace) -> None:
    user, host = pwd.getpwuid(os.getuid()).pw_name, socket.gethostname()
    content = lives.json("show", f"{lives.named('tiny')}.v1")
    assert (content["requester"]["user"], content["requester"]["host"]) == (user, host)
    named = f"{user}@{host}, command line"
    assert {one["requested_by"] for one in content["states"]} == {named}
    assert lives.json("history", lives.named("tiny"))[0]["requester"]["user"] == user
    assert named in lives.run("history", lives.named("tiny")).stdout


def events(server: PrefectServer, release: str, expected: int) -> list[dict[str, Any]]:
    """The events of a release, oldest first; they arrive a moment later."""
    about = {"id": [f"moorage.release.{release}"]}
    query = {"filter": {"resource": about, "order": "ASC"}, "limit": 50}
    deadline = time.monotonic() + ARRIVE_SECONDS
    while time.monotonic() < deadline:
        found: list[dict[str, Any]] = server.post("/events/filter", query)["events"]
        if len(found) >= expected:
            return found
        time.sleep(0.5)
    return found


def test_every_transition_is_an_event_with_model_host_flow_run_and_cause(
    lives: Workplace, prefect_server: PrefectServer
) -> None:
    name = lives.named("tiny")
    heard = events(prefect_server, f"{name}.v1", 7)
    states = [*STARTED, "stopping", "stopped"]
    assert [one["event"] for one in heard] == [f"moorage.release.{state}" for state in states]
    related = {
        (one["prefect.resource.role"], one["prefect.resource.id"]) for one in heard[4]["related"]
    }
    assert {("model", f"moorage.model.{name}"), ("host", "moorage.host.local")} <= related
    run = lives.ledger.releases.get(f"{name}.v1").flow_run_id
    assert ("flow-run", f"prefect.flow-run.{run}") in related
    failed = events(prefect_server, f"{name}.v2", 5)[-1]
    assert failed["event"] == "moorage.release.error"
    assert failed["payload"]["cause"] == lives.ledger.releases.get(f"{name}.v2").cause
    assert failed["payload"]["from"] == "starting"


def test_the_artifact_of_a_release_shows_its_way(
    lives: Workplace, prefect_server: PrefectServer
) -> None:
    run = lives.ledger.releases.get(f"{lives.named('tiny')}.v1").flow_run_id
    [record] = [
        one["data"]
        for key, one in prefect_server.artifacts(run).items()
        if key.startswith("release-")
    ]
    assert all(f"| {state} |" in record for state in ("pending", *STARTED))
