"""Deploys that race, and deploys that are killed."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from moorage.inventory.claims import Resource
from tests.e2e.conftest import process_engine
from tests.e2e.drill import KILLED
from tests.e2e.interrupted import POINTS
from tests.e2e.workplace import Workplace
from tests.waiting import PATIENCE_SECONDS, until

pytestmark = [pytest.mark.process, pytest.mark.server]

APPEAR_SECONDS = 60


@pytest.mark.parametrize("point", ["after the claim", "engine started", "old one stopping"])
def test_a_deploy_killed_at_a_point_leaves_nothing_that_hinders_the_next(
    workplace: Workplace, lifecycle_program: Path, point: str
) -> None:
    assert point in POINTS  # all of them: test_kill_drill.py
    if point == "old one stopping":
        workplace.run("deploy", workplace.spec(engine=process_engine(lifecycle_program, OLD="1")))
    spec = workplace.spec(engine=process_engine(lifecycle_program))

    workplace.run("deploy", spec, point=point, code=KILLED)
    workplace.run("deploy", spec)

    running = [row for row in workplace.releases() if row.state == "running"]
    assert len(running) == 1
    assert {claim.release for claim in workplace.claims()} == {running[0].id}
    assert workplace.running() == {f"moorage-{running[0].id}-r0-leader"}


def test_two_deploys_at_once_share_no_port_and_no_memory(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    engine = process_engine(lifecycle_program)
    runs = [workplace.start("deploy", workplace.spec(name, engine=engine)) for name in "ab"]
    for run in runs:
        _, errors = run.communicate(timeout=PATIENCE_SECONDS)
        assert run.returncode == 0, errors

    claims = workplace.claims()
    ports = [claim.index for claim in claims if claim.resource == Resource.PORT]
    assert len(set(ports)) == 2
    assert len([claim for claim in claims if claim.resource == Resource.RAM]) == 2


def test_of_two_deploys_of_one_model_the_second_finds_the_work_done(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    spec = workplace.spec(engine=process_engine(lifecycle_program))
    runs = [workplace.start("deploy", spec) for _ in range(2)]
    for run in runs:
        _, errors = run.communicate(timeout=PATIENCE_SECONDS)
        assert run.returncode == 0, errors
    assert [row.state for row in workplace.releases()] == ["running"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_deploy_that_is_stopped_undoes_what_it_did(
    workplace: Workplace, lifecycle_program: Path, number: signal.Signals
) -> None:
    run = workplace.spawn(
        "deploy", workplace.spec(engine=process_engine(lifecycle_program, "deaf"))
    )
    until(workplace.processes)
    run.send_signal(number)
    _, errors = run.communicate(timeout=PATIENCE_SECONDS)
    assert run.returncode == 130, errors
    assert ("then unfinished work is undone" in errors) == (number == signal.SIGINT)
    assert workplace.is_clean()
    assert (workplace.releases()[0].state, workplace.releases()[0].cause) == (
        "error",
        "interrupted",
    )


def test_an_impatient_second_signal_does_not_cut_the_undo_short(workplace: Workplace) -> None:
    stubborn = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
    engine = {"name": "vllm", "runtime": "process", "command": stubborn}
    run = workplace.start("deploy", workplace.spec(engine=engine))
    until(workplace.processes)
    for _ in range(3):
        run.send_signal(signal.SIGINT)
        time.sleep(0.3)
    _, errors = run.communicate(timeout=PATIENCE_SECONDS)
    assert run.returncode != 0, errors
    assert errors.count("then unfinished work is undone") == 1
    assert workplace.is_clean()
    assert workplace.releases()[0].state == "error"


def test_a_change_that_does_not_fit_beside_the_old_release_stops_it_first(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    port = workplace.first_port
    workplace.run(
        "deploy", workplace.spec(engine=process_engine(lifecycle_program, OLD="1"), port=port)
    )
    changed = workplace.json(
        "deploy", workplace.spec(engine=process_engine(lifecycle_program), port=port)
    )
    assert "must stop first" in changed["release"]["replacement"]
    assert [row.state for row in workplace.releases()] == ["running", "superseded"]


def test_a_stop_first_that_fails_brings_the_old_release_back(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    port = workplace.first_port
    workplace.run("deploy", workplace.spec(engine=process_engine(lifecycle_program), port=port))
    broken = workplace.spec(engine=process_engine(lifecycle_program, "die"), port=port)
    workplace.json("deploy", broken, code=6)
    assert [row.state for row in workplace.releases()] == ["error", "running"]
    assert {claim.release for claim in workplace.claims()} == {workplace.releases()[1].id}
    assert workplace.run("chat", workplace.named("tiny"), "hello").stdout.strip()
