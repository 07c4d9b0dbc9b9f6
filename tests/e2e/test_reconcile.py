"""Reconciling: what died comes back, what nobody owns goes, and what a dead flow left is undone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from moorage.releases.states import ReleaseState
from tasks.repair import LOCK
from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace
from tests.prefect_server import PrefectServer, prefect_server
from tests.waiting import PATIENCE_SECONDS, until

__all__ = ["prefect_server"]

pytestmark = [pytest.mark.process, pytest.mark.server]


@pytest.fixture
def place(tmp_path: Path, tiny_llama: Path, prefect_server: PrefectServer) -> Iterator[Workplace]:
    """A place in which reconciling has no patience."""
    place = Workplace(tmp_path, tiny_llama, prefect_server.environment)
    place.environment |= {
        "MOORAGE_PROBE_SECONDS": "0",
        "MOORAGE_PROBE_TIMEOUT_SECONDS": "1",
        "MOORAGE_ORPHAN_SECONDS": "0",
    }
    yield place
    place.close()


def reconcile(place: Workplace, *more: str) -> dict[str, dict[str, Any]]:
    """Actions, by what was done."""
    answer = place.json("reconcile", "--fleet", place.folder / "fleet.yaml", *more)
    return {one["deed"]: one for one in answer["actions"]}


def engine_of(place: Workplace) -> psutil.Process:
    """The engine itself, not its supervisor."""
    [supervisor] = [one for one in place.processes() if one.ppid() not in pids(place)]
    return supervisor.children()[0]


def pids(place: Workplace) -> set[int]:
    return {one.pid for one in place.processes()}


def until_it_answers(place: Workplace) -> None:
    place.wait_until(
        lambda: place.run("chat", place.named("tiny"), "hi", code=None).returncode == 0
    )


def test_a_release_that_died_is_started_again_where_it_was_and_not_too_often(
    place: Workplace, lifecycle_program: Path, prefect_server: PrefectServer
) -> None:
    place.run("deploy", place.spec(engine=process_engine(lifecycle_program)))
    [before] = place.releases()
    assert reconcile(place)["probe"]["outcome"] == "it answers"

    engine_of(place).kill()
    time.sleep(0.5)
    assert reconcile(place, "--dry-run").keys() == {"restart"}
    assert not [one for one in place.processes() if one.status() != psutil.STATUS_ZOMBIE]
    answer = reconcile(place)["restart"]
    assert answer["done"]
    until_it_answers(place)
    assert reconcile(place)["probe"]["outcome"] == "it answers again"
    [after] = place.releases()
    assert after.release
    assert before.release
    [restart] = after.release.restarts
    assert (restart.replicas, restart.reason) == ((0,), answer["reason"])
    assert after.release.model_copy(update={"restarts": ()}) == before.release
    assert (after.id, after.state) == (before.id, "running")
    assert "Restarts" in place.run("show", before.id).stdout
    assert {claim.release for claim in place.claims()} == {before.id}

    engine_of(place).kill()
    time.sleep(0.5)
    kept = place.ledger.repairs.of(before.id)
    assert kept.attempts == 1
    soon = datetime.now(UTC) + timedelta(seconds=15)
    place.ledger.repairs.keep(kept.model_copy(update={"not_before": soon}))
    assert "start 2 not before" in reconcile(place)["wait"]["reason"]
    until(lambda: events_of(prefect_server, before.id) == {"restarted", "recovered"})


def events_of(server: PrefectServer, release: str) -> set[str]:
    """What events of a release say of its restarts; they arrive a moment after a command's end."""
    names = ["moorage.release.restarted", "moorage.release.recovered"]
    heard = server.post("/events/filter", {"filter": {"event": {"name": names}}})["events"]
    about = f"moorage.release.{release}"
    own = [one for one in heard if one["resource"]["prefect.resource.id"] == about]
    return {one["event"].rpartition(".")[2] for one in own}


def test_an_engine_that_runs_and_does_not_answer_is_started_again_the_second_time(
    place: Workplace, lifecycle_program: Path
) -> None:
    place.run("deploy", place.spec(engine=process_engine(lifecycle_program)))
    engine = engine_of(place)
    os.kill(engine.pid, signal.SIGSTOP)
    assert "1 times in a row" in reconcile(place)["probe"]["outcome"]
    assert "2 times in a row" in reconcile(place)["probe"]["outcome"]
    done = reconcile(place)["restart"]
    assert "did not answer 2 times in a row" in done["reason"]
    assert engine_of(place).pid != engine.pid
    until_it_answers(place)


def test_what_nobody_owns_is_removed_after_a_while_and_what_is_owned_stays(
    place: Workplace, lifecycle_program: Path
) -> None:
    engine = process_engine(lifecycle_program)
    place.run("deploy", place.spec(engine=engine))
    place.run("deploy", place.spec("other", engine=engine))
    [row] = place.releases()
    place.ledger.releases.move(row.id, ReleaseState.STOPPING)
    place.ledger.releases.end(row.id, ReleaseState.STOPPED)
    place.ledger.workloads.drop(row.workloads[0].name)
    place.environment["MOORAGE_ORPHAN_SECONDS"] = "600"
    assert "it has no owner; removed after" in reconcile(place)["wait"]["reason"]
    assert len(place.running()) == 2
    place.environment["MOORAGE_ORPHAN_SECONDS"] = "0"
    assert reconcile(place)["remove"]["done"]
    [other] = place.releases("other")
    assert place.running() == {f"moorage-{other.id}-r0-leader"}


def test_a_release_that_is_not_to_be_started_again_is_closed(
    place: Workplace, lifecycle_program: Path
) -> None:
    engine = process_engine(lifecycle_program)
    place.run("deploy", place.spec(engine=engine, restart={"policy": "never"}))
    engine_of(place).kill()
    time.sleep(0.5)
    assert reconcile(place)["give up"]["done"]
    assert place.is_clean()
    assert place.releases()[0].state == "error"


@pytest.mark.parametrize("approval", ["none", "required"])
def test_a_release_that_keeps_dying_is_placed_on_another_host(
    place: Workplace, lifecycle_program: Path, approval: str
) -> None:
    low = place.first_port
    hosts = ", ".join(
        f"{{name: {name}, ports: {first}-{first + 9}}}"
        for name, first in (("one", low), ("two", low + 10))
    )
    (place.folder / "fleet.yaml").write_text(f"hosts: [{hosts}]\n")
    engine = process_engine(lifecycle_program)
    for redeploy in ({}, {"approval": approval}):  # with `required` a first deploy would wait
        spec = place.spec(engine=engine, restart={"attempts": 1}, redeploy=redeploy)
        place.run("apply", spec, "--set", "ours", "--yes")
    [old] = place.releases()
    died = place.ledger.repairs.of(old.id).model_copy(update={"attempts": 1})
    place.ledger.repairs.keep(died)
    engine_of(place).kill()
    time.sleep(0.5)
    assert reconcile(place)["replace"]["done"]
    new, before = place.releases()
    assert (new.state, before.state) == ("running", "superseded")
    # Which one is first depends on what was free of this machine at the moment each was looked at.
    assert {old.workloads[0].host, new.workloads[0].host} == {"one", "two"}
    assert new.spec_digest == old.spec_digest
    assert new.release
    assert new.release.applied_from == "ours", "it still belongs to the set of files"
    assert new.release.approval == (f"{old.id} ran before" if approval == "required" else "")
    assert {claim.host for claim in place.claims()} == {new.workloads[0].host}


def test_what_a_killed_deploy_left_is_undone_at_once_and_its_run_has_crashed(
    place: Workplace, lifecycle_program: Path, prefect_server: PrefectServer
) -> None:
    spec = place.spec(engine=process_engine(lifecycle_program))
    place.run("deploy", spec, code=None, point="verify")
    [row] = place.releases()
    assert place.processes()
    assert prefect_server.get(f"/flow_runs/{row.flow_run_id}")["state"]["type"] == "RUNNING"
    assert reconcile(place)["undo"]["done"]
    assert place.is_clean()
    assert prefect_server.get(f"/flow_runs/{row.flow_run_id}")["state"]["type"] == "CRASHED"
    answer = place.json("reconcile")
    assert (answer["outcome"], answer["actions"]) == ("unchanged", [])


def test_of_two_at_once_the_second_says_who_is_first(place: Workplace) -> None:
    with place.ledger.locks.holding(LOCK, wait_seconds=0, note="flow run first"):
        answer = place.json("reconcile")
    assert answer["outcome"] == "skipped"
    assert "flow run first" in answer["message"]


def test_a_model_on_which_a_flow_works_is_left_alone(
    place: Workplace, lifecycle_program: Path
) -> None:
    deploying = place.start(
        "deploy", place.spec(engine=process_engine(lifecycle_program, "slow:6"))
    )
    place.wait_until(lambda: bool(place.processes()))
    answer = place.json("reconcile")
    _, errors = deploying.communicate(timeout=PATIENCE_SECONDS)
    assert deploying.returncode == 0, errors
    assert answer["actions"] == []
