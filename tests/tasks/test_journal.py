from __future__ import annotations

import asyncio

import pytest

from moorage.common.failures import Cause, Failure
from moorage.releases.release import StepRecord
from tasks.journal import journal, listen_as, listening, step


class Ear:
    """Remembers what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.records: list[StepRecord] = []

    def started(self, step: str) -> None:
        self.heard.append(f"{step} started")

    def progressed(self, step: str, done: int, total: int) -> None:
        self.heard.append(f"{step} {done}/{total}")

    def ended(self, record: StepRecord, error: BaseException | None) -> None:
        self.records.append(record)
        self.heard.append(f"{record.name} ended: {error or record.summary}")

    def noted(self, text: str) -> None:
        self.heard.append(text)


def test_a_step_is_told_while_it_happens_and_kept_with_its_time() -> None:
    own = Ear()
    with journal(own) as diary:
        with step("stage") as note:
            note.progress(1, 2)
            note.say("8.0 GiB")
        diary.tell("one more thing")
    assert own.heard == ["stage started", "stage 1/2", "stage ended: 8.0 GiB", "one more thing"]
    assert diary.steps == own.records
    (record,) = diary.steps
    assert (record.name, record.summary) == ("stage", "8.0 GiB")
    assert 0 <= record.seconds < 1


def test_a_step_that_fails_is_kept_too() -> None:
    own = Ear()

    def fail() -> None:
        with step("place"):
            raise ValueError("no room")

    with journal(own) as diary, pytest.raises(ValueError, match="no room"):
        fail()
    assert own.heard == ["place started", "place ended: no room"]
    assert [record.name for record in diary.steps] == ["place"]


def test_a_step_that_hands_on_what_did_not_pass_has_failed_for_who_listens() -> None:
    own = Ear()
    with journal(own) as diary, step("gate") as note:
        note.say("asked, answered wrongly")
        note.fail(Failure(Cause.GATE_FAILED, "answered wrongly"))
    assert own.heard[-1].startswith("gate ended: ")
    assert own.heard[-1] != "gate ended: asked, answered wrongly"
    assert [record.summary for record in diary.steps] == ["asked, answered wrongly"]


def test_whoever_listens_hears_every_flow_inside_the_block_and_none_after() -> None:
    own, other = Ear(), Ear()
    with listening(other), journal(own), step("resolve"):
        pass
    with journal(own), step("derive"):
        pass
    assert other.heard == ["resolve started", "resolve ended: "]
    assert len(own.heard) == 4


def test_listeners_nest() -> None:
    outer, inner = Ear(), Ear()
    with listening(outer), listening(inner), journal(Ear()) as diary:
        diary.tell("hello")
    assert outer.heard == inner.heard == ["hello"]


class Deaf(Ear):
    """A terminal that is gone: what writes there raises this."""

    def noted(self, text: str) -> None:
        raise SystemExit(text)


def test_a_listener_that_is_gone_keeps_no_other_from_hearing() -> None:
    own = Ear()
    with listening(own), journal(Deaf()) as diary:
        diary.tell("v1 is started again")
    assert own.heard == ["v1 is started again"]


def test_a_step_outside_any_flow_is_no_mistake() -> None:
    with step("resolve") as note:
        note.say("alone")
    assert note.summary == "alone"


async def test_flows_at_the_same_time_keep_their_journals_apart() -> None:
    async def flow(name: str) -> list[str]:
        with journal(Ear()) as diary:
            with step(name):
                await asyncio.sleep(0)
            return [record.name for record in diary.steps]

    assert [*await asyncio.gather(flow("a"), flow("b"))] == [["a"], ["b"]]


async def test_steps_of_one_flow_at_the_same_time_are_kept_in_order_of_their_ends() -> None:
    async def work(name: str, turns: int) -> None:
        with step(name):
            for _ in range(turns):
                await asyncio.sleep(0)

    with journal(Ear()) as diary:
        await asyncio.gather(work("pull", 5), work("stage", 1))
    assert [record.name for record in diary.steps] == ["stage", "pull"]


def test_flows_that_run_at_once_are_heard_under_their_names() -> None:
    ear = Ear()

    async def flow(name: str) -> None:
        with listen_as(name), journal(Ear()) as diary, step("stage") as note:
            await asyncio.sleep(0)
            note.progress(1, 2)
            diary.tell("soon")

    async def both() -> None:
        await asyncio.gather(flow("one"), flow("two"))

    with listening(ear):
        asyncio.run(both())
        with journal(Ear()) as diary:
            diary.tell("without a name")
    for name in ("one", "two"):
        heard = [text.removeprefix(f"{name}: ") for text in ear.heard if text.startswith(name)]
        assert heard == ["stage started", "stage 1/2", "soon", "stage ended: "]
    assert ear.heard[-1] == "without a name"
