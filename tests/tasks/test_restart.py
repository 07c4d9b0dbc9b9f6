"""Starting a release again takes its turn on its accelerators, and counts once it has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from moorage.adapters.ledger.locks import this_process
from moorage.adapters.ledger.releases import Releases
from moorage.common.failures import Cause, Failure
from moorage.engines.launch import planned_workload
from moorage.operations.reconcile.actions import Action, ActionKind, ActionOutcome
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState
from tasks import cleanup, probe, repair, restart
from tasks.context import ledger
from tasks.repair import _carry_out
from tasks.start_lease import lease_of
from tests.builders import a_release
from tests.tasks.conftest import on_a_gpu
from tests.tasks.test_launch import on
from tests.tasks.test_replace import PLAN

pytestmark = pytest.mark.usefixtures("own_home")

S = ReleaseState
NAME = "start:gpu-1:cuda:0"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is started, while its accelerator is whose."""
    starts = list[str]()

    def begin(row: ReleaseRow, *_: object) -> list[object]:
        starts.append(f"{row.id}, of {ledger().locks.holders([NAME])[NAME].note}")
        return [planned_workload(PLAN.containers[0])]

    monkeypatch.setattr(cleanup, "restore_image", lambda *_: None)
    monkeypatch.setattr(restart, "lacks_image", lambda *_: False)
    monkeypatch.setattr(restart, "start_part", begin)
    monkeypatch.setattr(restart, "stop", lambda *_: None)
    monkeypatch.setattr(cleanup, "restore_release", begin)
    return starts


STARTS = pytest.mark.parametrize("start", [restart.restart, cleanup.bring_back])
Do = Callable[[Action, ReleaseRow], str]
DIED = Action(kind=ActionKind.RESTART, reason="it died", dead=(PLAN.containers[0].name,))
SILENT = Action(kind=ActionKind.RESTART, reason="it did not answer 2 times in a row")


def test_what_was_wiped_is_deployed_again_since_a_restart_stages_nothing(
    started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise Failure(Cause.PLACE_GONE, "bind source path does not exist: /models/tiny")

    monkeypatch.setattr(restart, "start_part", missing)
    row = on_a_gpu()
    monkeypatch.setattr(Releases, "get", lambda *_: row)
    outcome = _carry_out(DIED.model_copy(update={"release": row.id, "state": row.state}))
    assert outcome.needs_deploy
    assert not outcome.done
    assert started == []
    assert ledger().repairs.of(row.id).attempts == 1


@STARTS
def test_a_start_that_waits_for_another_engine_is_not_counted(
    started: list[str], start: Do
) -> None:
    row = on_a_gpu()
    ledger().locks.take_all([NAME], "other", this_process("llama.v3"))
    with pytest.raises(Failure, match=r"llama\.v3 starts on") as caught:
        start(DIED, row)
    assert caught.value.cause is Cause.ACCELERATOR_STARTING
    assert started == []
    assert ledger().repairs.of(row.id).attempts == 0


def test_a_release_whose_files_have_changed_is_not_stopped_to_be_started_again(
    started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, events = list[object](), list[str]()
    monkeypatch.setattr(restart, "stop", lambda *one: stopped.append(one))
    monkeypatch.setattr(restart, "emit_release_event", lambda name, *_: events.append(name))
    files = {"source": "file:///srv/no-more", "revision": "local-1", "names": ["a.gguf"]}
    row = on_a_gpu()
    release = a_release(row.id, placement=on("gpu-1:0"), plan=PLAN, local_files=[files])
    row = replace(row, release=release)
    for attempts in (1, 2):
        with pytest.raises(Failure, match="ran revision local-1; the source now has none"):
            restart.restart(DIED, row)
        record = ledger().repairs.of(row.id)
        assert record.attempts == attempts, "so that it is tried ever more rarely"
        assert "local-1" in record.failure
    assert (started, stopped, events) == ([], [], ["refused"])
    kept = ledger().releases.get(row.id).release
    assert kept
    assert kept.restarts == ()


@STARTS
def test_its_accelerators_are_its_own_from_the_start_until_it_answers(
    started: list[str], start: Do
) -> None:
    row = on_a_gpu()
    start(DIED, row)
    assert started == [f"{row.id}, of {row.id}"]
    assert ledger().repairs.of(row.id).attempts == 1
    ledger().locks.drop(lease_of(row.id))
    assert not ledger().locks.is_held(NAME)


@pytest.mark.parametrize("cause", [None, Cause.IMAGE_PULL_TIMEOUT])
def test_a_pull_before_a_release_comes_back_takes_nothing_of_its_deadline_or_lease(
    started: list[str], monkeypatch: pytest.MonkeyPatch, cause: Cause | None
) -> None:
    row, begun = on_a_gpu(), list[object]()

    def pull(*_: object) -> None:
        begun.extend((ledger().repairs.of(row.id).started_at, ledger().locks.is_held(NAME)))
        if cause:
            raise Failure(cause, "not within 1800 s")

    monkeypatch.setattr(cleanup, "restore_image", pull)
    cleanup.bring_back(DIED, row)
    assert begun == [None, False]
    assert ledger().repairs.of(row.id).attempts == 1
    assert len(started) == 1, "without the image, other replicas may serve"


def test_a_restart_that_lacks_its_image_leaves_the_locks_before_it_pulls(
    started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row, held = on_a_gpu(), list[bool]()
    monkeypatch.setattr(Releases, "get", lambda *_: row)
    monkeypatch.setattr(restart, "lacks_image", lambda *_: True)
    action = DIED.model_copy(update={"release": row.id, "state": row.state, "model": row.model})
    [outcome] = repair._repair_model(row.model, [action], "a reconcile")
    assert (outcome.lacks_image, outcome.done, outcome.exit_code) == ((0,), False, 0)

    def pull(*_: object) -> None:
        locks = ledger().locks
        held.extend(locks.is_held(name) for name in (row.model, NAME, f"image:{row.model}"))
        other = repair._fetch(outcome)
        assert other.cause is Cause.DEPLOY_IN_PROGRESS, "one pull at a time"
        assert "failed" not in other.summary

    monkeypatch.setattr(restart, "restore_image", pull)
    assert repair._fetch(outcome).cause is None
    assert held == [False, False, True]
    assert (started, ledger().repairs.of(row.id).attempts) == ([], 0)


def test_nothing_is_pulled_for_a_release_that_ended_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row, pulled = on_a_gpu(), list[object]()
    monkeypatch.setattr(Releases, "get", lambda *_: row)
    monkeypatch.setattr(restart, "restore_image", lambda *one: pulled.append(one))
    action = DIED.model_copy(update={"release": row.id, "state": S.UNREACHABLE})
    outcome = repair._fetch(ActionOutcome(action=action, lacks_image=(0,)))
    assert (outcome.cause, pulled) == (None, [])


def test_a_pull_that_fails_is_tried_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    def pull(*_: object) -> None:
        raise Failure(Cause.IMAGE_PULL_TIMEOUT, "not within 1800 s")

    row = on_a_gpu()
    monkeypatch.setattr(Releases, "get", lambda *_: row)
    monkeypatch.setattr(restart, "restore_image", pull)
    action = DIED.model_copy(update={"release": row.id, "state": row.state})
    outcome = repair._fetch(ActionOutcome(action=action, lacks_image=(0,)))
    assert (outcome.cause, outcome.exit_code) == (Cause.IMAGE_PULL_TIMEOUT, 5)
    record = ledger().repairs.of(row.id)
    assert record.attempts == 1
    assert "not within 1800 s" in record.failure


def test_what_is_silent_still_is_started_again(started: list[str], silent: ReleaseRow) -> None:
    restart.restart(SILENT, silent)
    assert len(started) == 1


@pytest.mark.parametrize("sign", ["answers", "generates"])
def test_what_answers_before_it_is_started_again_counts_as_recovered(
    monkeypatch: pytest.MonkeyPatch, started: list[str], silent: ReleaseRow, sign: str
) -> None:
    async def answer(*_: object) -> tuple[str, bool]:
        return "", False

    events = list[str]()
    monkeypatch.setattr(probe, "emit_release_event", lambda name, *_: events.append(name))
    if sign == "answers":
        monkeypatch.setattr(probe, "_problem", answer)
    else:
        monkeypatch.setattr(probe, "_token_count", lambda *_: 11)
    assert restart.restart(SILENT, silent) == "it answers again"
    assert (started, events) == ([], ["recovered"])
    record = ledger().repairs.of(silent.id)
    assert (record.missed, record.attempts, record.failure) == (0, 0, "")
    assert record.probed_at
