"""A release falls asleep only where its hosts answer, and wakes only where its place is."""

from __future__ import annotations

import asyncio
import threading
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Cause, Failure
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.releases.release_row import ASLEEP, ReleaseRow
from moorage.releases.states import ReleaseState
from moorage.reports.record import release_document
from tasks import sleep, stopping
from tasks.context import ledger
from tests.builders import (
    REVISION,
    a_claim,
    a_container,
    a_fleet,
    a_host,
    a_placement,
    a_plan,
    a_profile,
    a_release,
    a_row,
    a_spec,
    a_workload,
    an_accelerator,
)
from tests.tasks.hosts_away import hosts_without

pytestmark = pytest.mark.usefixtures("own_home")

SPEC = a_spec()
PLACEMENT = a_placement(SPEC, a_host())
PORT = next(claim for claim in PLACEMENT.claims if claim.resource == Resource.PORT)
ALL_MEMORY = a_host().capacities[1].amount
TAKEN = a_claim(Resource.ACCELERATOR, ALL_MEMORY, release="other.v1")


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Hosts that do not answer; all others do, and stop what they run."""
    found = set[str]()
    monkeypatch.setattr(sleep, "runtime_for", hosts_without(found))
    monkeypatch.setattr(stopping, "stop_all", lambda *_: None)
    return found


def placed(*states: ReleaseState) -> ReleaseRow:
    """A release that serves on `gpu-1`, and was then moved on."""
    own = ledger().releases
    release = own.begin(SPEC, REVISION, "")
    for state in (ReleaseState.SCHEDULED, ReleaseState.STARTING):
        own.move(release, state)
    plan = a_plan(release=release)
    made = {"placement": PLACEMENT, "plan": plan, "profile": a_profile()}
    own.take_over(a_release(release, spec=SPEC, **made))
    ledger().workloads.put(release, a_workload(release=release, host="gpu-1"))
    for state in states:
        own.move(release, state, ASLEEP)
    return own.get(release)


async def test_a_release_whose_hosts_answer_falls_asleep(away: set[str]) -> None:
    row = placed()
    await sleep.put_to_sleep(row, "requested")
    assert ledger().releases.get(row.id).state == ReleaseState.ASLEEP
    assert not away


async def test_a_release_on_a_host_that_does_not_answer_keeps_serving(away: set[str]) -> None:
    """Its engine there could not be stopped: it would neither serve nor sleep."""
    row = placed()
    away.add("gpu-1")
    with pytest.raises(Failure, match="gpu-1 is away"):
        await sleep.put_to_sleep(row, "requested")
    found = ledger().releases.get(row.id)
    assert found.state == ReleaseState.UNREACHABLE
    assert "gpu-1 is away" in found.cause


@pytest.mark.parametrize(
    ("host", "cause", "words"),
    [
        (a_host("gpu-2"), Cause.PLACE_GONE, "gpu-1 is not in the fleet any more"),
        (a_host(unreachable="no route"), Cause.PLACE_GONE, "gpu-1 cannot be reached: no route"),
        (a_host(claims=(TAKEN,)), Cause.NO_FIT, "accelerator 0: .* other.v1"),
        (a_host(ports_in_use=(PORT.index,)), Cause.PORT_TAKEN, "another program listens"),
    ],
)
async def test_a_place_that_is_gone_is_told_from_one_that_is_taken(
    host: HostSnapshot, cause: Cause, words: str
) -> None:
    row = placed(ReleaseState.STOPPING)
    ledger().workloads.drop(row.workloads[0].name)
    ledger().releases.end(row.id, ReleaseState.ASLEEP, ASLEEP, [PORT])
    kept = (replace(PORT, release=row.id),)
    there = host.model_copy(update={"claims": (*host.claims, *kept)})
    with pytest.raises(Failure, match=words) as caught:
        await sleep.wake(ledger().releases.get(row.id), a_fleet(there))
    assert caught.value.cause is cause
    assert "`moorage rollback tiny --to tiny.v1`" in caught.value.suggestion
    changes = ledger().releases.transitions(row.id)
    assert [one.after for one in changes][-1] == ReleaseState.ASLEEP
    assert ReleaseState.WAKING not in {one.after for one in changes}


async def test_a_model_wakes_with_its_device_that_the_driver_numbers_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claimed: list[tuple[int, str]] = []

    async def start(*_: object) -> None:
        claimed.extend((one.index, one.device) for one in ledger().claims.all() if one.device)

    monkeypatch.setattr(sleep, "_start", start)
    monkeypatch.setattr(sleep, "restore_image", lambda *_: None)
    for module in (sleep, stopping):
        monkeypatch.setattr(module, "stop_all", lambda *_: None)
    row = placed(ReleaseState.STOPPING, ReleaseState.ASLEEP)
    devices = [an_accelerator(index, uuid=f"GPU-{1 - index}") for index in range(2)]
    await sleep.wake(row, a_fleet(a_host(accelerators=devices)))
    assert claimed == [(1, "GPU-0")]


async def test_a_wake_that_is_stopped_while_it_claims_leaves_it_asleep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = placed(ReleaseState.STOPPING, ReleaseState.ASLEEP)
    begun, may_end, commit = threading.Event(), threading.Event(), ledger().claims.commit

    def slowly(*arguments: Any, **more: Any) -> None:
        begun.set()
        may_end.wait(5)
        commit(*arguments, **more)

    monkeypatch.setattr(ledger().claims, "commit", slowly)
    monkeypatch.setattr(stopping, "stop_all", lambda *_: None)
    waking = asyncio.create_task(sleep.wake(row, a_fleet(a_host())))
    await in_thread(begun.wait, 5)
    waking.cancel()
    threading.Timer(0.2, may_end.set).start()
    with pytest.raises(asyncio.CancelledError):
        await waking
    assert ledger().releases.get(row.id).state == ReleaseState.ASLEEP
    assert {claim.resource for claim in ledger().claims.all()} == {Resource.PORT}


async def test_why_it_did_not_wake_is_kept_until_it_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    fails = [True]

    async def start(*_: object) -> None:
        if fails.pop():
            raise Failure(Cause.ENGINE_EXITED, "exit code 1", log_tail="no such file")

    row = placed(ReleaseState.STOPPING, ReleaseState.ASLEEP)
    monkeypatch.setattr(sleep, "_start", start)
    monkeypatch.setattr(sleep, "restore_image", lambda *_: None)
    for module in (sleep, stopping):
        monkeypatch.setattr(module, "stop_all", lambda *_: None)
    with pytest.raises(Failure, match="exit code 1"):
        await sleep.wake(row, a_fleet(a_host()))
    row = ledger().releases.get(row.id)
    assert row.release
    assert row.release.wake_failure
    assert (row.state, row.release.wake_failure.log_tail) == (ReleaseState.ASLEEP, "no such file")
    page = release_document(row.release, ()).markdown()
    assert "It did not wake: engine-exited" in page
    assert "no such file" in page

    fails.append(False)
    await sleep.wake(row, a_fleet(a_host()))
    row = ledger().releases.get(row.id)
    assert row.release
    assert (row.state, row.release.wake_failure) == (ReleaseState.RUNNING, None)


@pytest.mark.parametrize(("level", "woken"), [(1, True), (2, False)])
async def test_an_engine_that_reads_its_weights_again_wakes_only_with_those_that_it_ran(
    monkeypatch: pytest.MonkeyPatch, level: int, woken: bool
) -> None:
    calls = list[object]()

    async def asleep(*_: object) -> bool:
        return True

    async def call(*arguments: object) -> None:
        calls.append(arguments)

    monkeypatch.setattr(sleep, "are_asleep", asleep)
    monkeypatch.setattr(sleep, "wake_engines", call)
    monkeypatch.setattr(sleep, "verify", call)
    files = {"source": "file:///srv/no-more", "revision": "local-1", "names": ["a.gguf"]}
    plan = a_plan(a_container())
    made = {"placement": PLACEMENT, "plan": plan, "profile": a_profile(), "local_files": [files]}
    release = a_release("tiny.v1", spec=a_spec(sleep_level=level), **made)
    row = a_row(release, workloads=(a_workload(),))
    with nullcontext() if woken else pytest.raises(Failure, match=r"the source now has none"):
        assert await sleep._wake_in_engines(row, release)
    assert bool(calls) is woken


async def test_a_wake_that_cannot_be_undone_says_so_and_fails_for_its_own_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = list[str]()

    async def start(*_: object) -> None:
        raise Failure(Cause.ENGINE_EXITED, "exit code 1")

    def stop(*_: object) -> None:
        raise Failure(Cause.RUNTIME_UNAVAILABLE, "gpu-1 is away")

    row = placed(ReleaseState.STOPPING, ReleaseState.ASLEEP)
    for name, value in (("_start", start), ("stop_all", lambda *_: None), ("tell", notes.append)):
        monkeypatch.setattr(sleep, name, value)
    monkeypatch.setattr(sleep, "restore_image", lambda *_: None)
    monkeypatch.setattr(stopping, "stop_all", stop)
    with pytest.raises(Failure, match="exit code 1"):
        await sleep.wake(row, a_fleet(a_host()))
    assert ledger().releases.get(row.id).state == ReleaseState.WAKING
    [note] = notes
    assert note.startswith(f"{row.id} stays `waking`")
    assert "gpu-1 is away" in note
