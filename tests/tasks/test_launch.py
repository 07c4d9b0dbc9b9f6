from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from moorage.adapters.hosts.observation import Observation
from moorage.adapters.ledger.locks import Owner
from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.placement.placement import Placement, Seat
from moorage.releases.release_row import ReleaseRow
from moorage.releases.states import ReleaseState
from moorage.spec import Deadlines, EngineName, RuntimeName
from tasks import launch as turns
from tasks.context import ledger
from tasks.journal import journal
from tasks.launch import AcceleratorStartLock
from tasks.start_lease import lease_of, lock_names
from tests.builders import REVISION, a_release, a_row, a_spec, a_workload
from tests.tasks.test_journal import Ear

pytestmark = pytest.mark.usefixtures("own_home")

DEADLINES = Deadlines(load_seconds=900, warm_up_seconds=100)
PATIENCE = 1120


class Clock:
    """A clock that goes on by 100 s whenever somebody looks at it, and lets things happen."""

    def __init__(self) -> None:
        self.now = 0
        self.happenings: dict[int, Callable[[], None]] = {}

    def __call__(self) -> float:
        self.now += 100
        self.happenings.pop(self.now, lambda: None)()
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(turns, "POLL_SECONDS", 0)
    monkeypatch.setattr(turns, "time", SimpleNamespace(monotonic=clock))
    return clock


def on(*accelerators: str) -> Placement:
    """A placement with one seat an accelerator, given as `host:index`; on CPU without any."""
    places = [accelerator.split(":") for accelerator in accelerators]
    seats = [
        Seat(
            replica=number,
            host=host,
            runtime=RuntimeName.DOCKER,
            accelerator_type="cuda",
            accelerators=(int(index),),
            accelerator_bytes=(1,),
            port=40000 + number,
            reason="",
        )
        for number, (host, index) in enumerate(places)
    ]
    on_cpu = Seat(replica=0, host="gpu-1", runtime=RuntimeName.DOCKER, port=40000, reason="")
    return Placement(
        engine=EngineName.VLLM,
        engine_origin=Origin.USER,
        engine_reason="",
        seats=tuple(seats) or (on_cpu,),
        verdicts=(),
    )


def turn(release: str, placement: Placement) -> AcceleratorStartLock:
    return AcceleratorStartLock(release, release.split(".")[0], placement)


def running(placement: Placement) -> ReleaseRow:
    """The release before, which serves there."""
    return a_row(a_release(placement=placement))


async def waits(mine: AcceleratorStartLock) -> list[str]:
    """Notes while it waits."""
    ear = Ear()
    with journal(ear):
        await mine.acquire(DEADLINES)
    return ear.heard


def held() -> set[str]:
    names = [f"start:gpu-1:cuda:{index}" for index in range(3)]
    return set(ledger().locks.holders(names))


async def test_a_release_that_is_stopped_first_need_not_become_ready_before() -> None:
    old = running(on("gpu-1:0"))
    owner = Owner(machine="", pid=0, started_at=0, note=old.id)
    ledger().locks.take_all(["start:gpu-1:cuda:0"], lease_of(old.id), owner, 600)
    first = on("gpu-1:0").model_copy(update={"stop_first": "it is full"})
    mine = AcceleratorStartLock("tiny.v2", "tiny", first, old)
    assert await waits(mine) == []
    assert held() == {"start:gpu-1:cuda:0"}
    mine.release()


@pytest.mark.parametrize(("runs", "wrong"), [(False, "no connection"), (True, "")])
async def test_an_old_release_that_has_died_again_or_answers_by_now_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, runs: bool, wrong: str
) -> None:
    """Reconciling has started it again, and looks at it no more: its model is worked on."""
    old = started_again(monkeypatch, runs, [wrong])
    mine = AcceleratorStartLock("tiny.v2", "tiny", on("gpu-1:1"), old)
    assert await waits(mine) == []
    mine.release()


async def test_an_old_release_that_still_loads_is_waited_for_until_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = started_again(monkeypatch, True, ["loads", "loads", ""])
    mine = AcceleratorStartLock("tiny.v2", "tiny", on("gpu-1:0"), old)
    assert "waits: tiny.v1 is starting on gpu-1 cuda:0" in await waits(mine)
    assert held() == {"start:gpu-1:cuda:0"}
    mine.release()


def started_again(monkeypatch: pytest.MonkeyPatch, runs: bool, wrong: list[str]) -> ReleaseRow:
    """What reconciling has started again, and what it says to each question."""
    old = replace(running(on("gpu-1:0")), workloads=(a_workload(),))
    owner = Owner(machine="", pid=0, started_at=0, note=old.id)
    ledger().locks.take_all(["start:gpu-1:cuda:0"], lease_of(old.id), owner, 600)

    async def answer(*_: object) -> str:
        return wrong.pop(0)

    seen = SimpleNamespace(observe=lambda _: Observation(running=runs, detail=""))
    monkeypatch.setattr(turns, "runtime_for", lambda *_: seen)
    monkeypatch.setattr(turns, "answers", answer)
    return old


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (on(), ()),
        (on("gpu-1:0"), ("start:gpu-1:cuda:0",)),
        (on("gpu-1:0", "gpu-1:0"), ("start:gpu-1:cuda:0",)),
        (on("gpu-2:1", "gpu-1:1"), ("start:gpu-1:cuda:1", "start:gpu-2:cuda:1")),
    ],
)
def test_there_is_one_lock_for_each_accelerator(
    placement: Placement, expected: tuple[str, ...]
) -> None:
    assert lock_names(placement) == expected


def test_the_release_that_is_replaced_ends_in_the_same_turn() -> None:
    mine = AcceleratorStartLock("tiny.v2", "tiny", on("gpu-1:0"), running(on("gpu-1:1")))
    assert mine.names == ("start:gpu-1:cuda:0", "start:gpu-1:cuda:1")


async def test_nobody_waits_where_nobody_starts() -> None:
    first, second = turn("llama.v3", on("gpu-1:0")), turn("tiny.v1", on("gpu-1:1"))
    assert await waits(first) == await waits(second) == []
    assert held() == {"start:gpu-1:cuda:0", "start:gpu-1:cuda:1"}
    first.release()
    assert held() == {"start:gpu-1:cuda:1"}
    second.release()


async def test_who_starts_there_is_waited_for_and_told(clock: Clock) -> None:
    first = turn("llama.v3", on("gpu-1:0"))
    await waits(first)
    clock.happenings = {300: first.release}
    second = turn("tiny.v1", on("gpu-1:0"))
    who = "llama.v3 is starting on gpu-1 cuda:0"
    assert await waits(second) == [
        "wait started",
        f"waits: {who}",
        f"wait ended: until the start before had ended: {who}",
    ]
    assert held() == {"start:gpu-1:cuda:0"}
    second.release()


async def test_who_does_not_end_in_time_is_waited_for_no_longer(clock: Clock) -> None:
    first = turn("llama.v3", on("gpu-1:0"))
    await waits(first)
    second = turn("tiny.v1", on("gpu-1:0"))
    with pytest.raises(
        Failure, match=r"llama\.v3 is starting on gpu-1 cuda:0, and has not ended within 1120 s"
    ) as caught:
        await waits(second)
    assert caught.value.cause is Cause.ACCELERATOR_STARTING
    assert PATIENCE < clock.now < PATIENCE + 300
    second.release()  # ends what it never had
    assert held() == {"start:gpu-1:cuda:0"}
    first.release()


async def test_each_that_goes_before_has_its_own_time(clock: Clock) -> None:
    first, other = turn("llama.v3", on("gpu-1:0")), turn("qwen.v1", on("gpu-1:0"))
    await waits(first)

    def superseded_since() -> None:
        first.release()
        assert other._try() == {}

    clock.happenings = {800: superseded_since, 1500: lambda: ledger().locks.drop(other._token)}
    last = turn("tiny.v1", on("gpu-1:0"))
    notes = [text for text in await waits(last) if text.startswith("waits")]
    assert [text.split()[1] for text in notes] == ["llama.v3", "qwen.v1"]
    assert clock.now > PATIENCE
    last.release()


async def test_who_waits_holds_nothing_meanwhile(clock: Clock) -> None:
    first = turn("llama.v3", on("gpu-1:0"))
    second = turn("tiny.v1", on("gpu-1:0", "gpu-1:1"))
    await waits(first)
    before = held()
    waiting = asyncio.create_task(waits(second))

    def cancel() -> None:
        assert held() == before
        waiting.cancel()

    clock.happenings = {300: cancel}
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert clock.now == 300
    second.release()
    assert held() == before
    first.release()


async def test_a_turn_ends_once_however_often_it_is_told_to() -> None:
    first, second = turn("llama.v3", on("gpu-1:0")), turn("tiny.v1", on("gpu-1:0"))
    await waits(first)
    first.release()
    await waits(second)
    first.release()
    assert held() == {"start:gpu-1:cuda:0"}
    second.release()
    assert held() == set()


async def test_what_a_flow_that_is_gone_was_starting_is_cleaned_up_before_the_start() -> None:
    gone = ledger().releases.begin(a_spec(name="gone"), REVISION, "")
    mine = turn("tiny.v1", on("gpu-1:0"))
    notes = await waits(mine)
    assert ledger().releases.get(gone).state == ReleaseState.ERROR
    assert notes == [f"cleaned up after {gone}, whose flow was interrupted while it was pending"]
    mine.release()


async def test_a_release_whose_flow_is_at_work_is_left_alone() -> None:
    own = ledger().releases.begin(a_spec(), REVISION, "")
    other = ledger().releases.begin(a_spec(name="other"), REVISION, "")
    mine = turn(own, on("gpu-1:0"))
    with ledger().locks.holding("other", wait_seconds=0):
        assert await waits(mine) == []
    assert {row.id for row in ledger().releases.unfinished()} == {own, other}
    mine.release()
