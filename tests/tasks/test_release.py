"""A release is closed when its flow fails, and marked when nobody can see it."""

from __future__ import annotations

import httpx
import pytest
from prefect.client.base import PrefectHttpxAsyncClient

from moorage.common.failures import Cause, Failure
from moorage.placement.placement import Analyzed
from moorage.releases.states import ReleaseState
from tasks.compare import recorded_reachability
from tasks.context import ledger
from tasks.journal import Journal
from tasks.release import ReleaseDraft, cause_of, close_on_failure
from tests.builders import (
    REVISION,
    a_fleet,
    a_host,
    a_model,
    a_placement,
    a_profile,
    a_release,
    a_spec,
    a_workload,
)

pytestmark = pytest.mark.usefixtures("own_home")

S = ReleaseState
FLEET = a_fleet(a_host())
PLACEMENT = a_placement(a_spec(), a_host())


def scheduled(instead_of: str = "") -> str:
    release = ledger().releases.begin(a_spec(), REVISION, "")
    ledger().claims.commit(release, PLACEMENT.claims, FLEET, instead_of=instead_of)
    return release


def test_the_files_that_it_reads_in_place_are_recorded() -> None:
    model = a_model(source="file:///srv/tiny", revision="local-1", fingerprinted=("a", "b"))
    draft = ReleaseDraft(a_release(), Journal([]), None)
    draft.add_analysis(Analyzed(a_spec(), model, a_profile()))
    (files,) = draft.release.local_files
    assert (files.source, files.revision, files.names) == (
        "file:///srv/tiny",
        "local-1",
        ("a", "b"),
    )


def running() -> str:
    release = scheduled()
    ledger().releases.move(release, S.STARTING)
    ledger().releases.take_over(a_release(release, placement=PLACEMENT))
    return release


def holders() -> set[str]:
    return {claim.release for claim in ledger().claims.all()}


class Stopped(BaseException):
    """A signal."""


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (Failure(Cause.NO_FIT, "gpu-1: too small"), "no-fit"),
        (TimeoutError("too slow"), "step-timeout"),
        (Stopped(), "interrupted"),
        (RuntimeError("a mistake"), "internal: RuntimeError('a mistake')"),
    ],
)
def test_a_release_whose_flow_fails_ends_with_the_cause_and_holds_nothing(
    error: BaseException, cause: str
) -> None:
    release = scheduled()
    with pytest.raises(type(error)), close_on_failure(release, None):
        raise error
    assert ledger().releases.get(release).cause == cause == cause_of(error)
    last = ledger().releases.transitions(release)[-1]
    assert (last.before, last.after, last.cause) == (S.SCHEDULED, S.ERROR, cause)


async def test_a_signal_while_prefects_server_answers_is_no_refusal_of_the_server() -> None:
    def stop(_: httpx.Request) -> httpx.Response:
        raise Stopped

    async with PrefectHttpxAsyncClient(transport=httpx.MockTransport(stop)) as client:
        with pytest.raises(Stopped) as raised:
            await client.get("http://127.0.0.1/api/")
    assert cause_of(raised.value) == "interrupted"
    assert holders() == set()


def test_what_was_started_keeps_its_claims_until_it_is_gone() -> None:
    release = scheduled()
    ledger().workloads.put(release, a_workload(release=release))
    with pytest.raises(Stopped), close_on_failure(release, None):
        raise Stopped
    assert ledger().releases.get(release).state == S.ERROR
    assert holders() == {release}
    assert [row.id for row in ledger().releases.not_undone()] == [release]


def test_who_made_room_gets_its_claims_back_in_the_same_step() -> None:
    old = running()
    new = scheduled(instead_of=old)
    assert holders() == {new}
    row = ledger().releases.get(old)
    with pytest.raises(Stopped), close_on_failure(new, row):
        raise Stopped
    assert holders() == {old}
    assert ledger().releases.get(new).state == S.ERROR


def test_a_release_that_took_over_is_left_alone_and_the_run_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, notes = running(), list[str]()
    monkeypatch.setattr("tasks.release.tell", notes.append)
    with pytest.raises(Stopped), close_on_failure(release, None):
        raise Stopped
    assert ledger().releases.get(release).state == S.RUNNING
    assert holders() == {release}
    assert notes == [f"{release} has taken over and serves on"]


async def test_a_release_goes_from_state_to_state() -> None:
    draft = ReleaseDraft(a_release(id=scheduled()), Journal([]), None)
    await draft.enter(S.DOWNLOADING)
    assert ledger().releases.get(draft.release.id).state == S.DOWNLOADING
    with pytest.raises(Failure) as caught:
        await draft.enter(S.RUNNING)
    assert caught.value.cause is Cause.LOST_LOCK


AWAY = Failure(Cause.RUNTIME_UNAVAILABLE, "gpu-1 does not answer")


def look(release: str, error: Failure | None = None) -> None:
    with recorded_reachability(ledger().releases.get(release)):
        if error:
            raise error


def test_what_cannot_be_seen_is_unreachable_until_it_is_seen_again() -> None:
    release = running()
    for _ in range(2):
        with pytest.raises(Failure, match="gpu-1 does not answer"):
            look(release, AWAY)
        row = ledger().releases.get(release)
        assert row.state == S.UNREACHABLE
        assert "gpu-1 does not answer" in row.cause
        serving = ledger().releases.running("tiny")
        assert serving
        assert serving.id == release
        assert holders() == {release}
    look(release)
    look(release)
    assert [one.after for one in ledger().releases.transitions(release)[-2:]] == [
        S.UNREACHABLE,
        S.RUNNING,
    ]


def test_what_was_moved_meanwhile_stays_where_it_is() -> None:
    release = running()
    row = ledger().releases.get(release)
    ledger().releases.move(release, S.STOPPING)
    with pytest.raises(Failure, match="gpu-1 does not answer"), recorded_reachability(row):
        raise AWAY
    assert ledger().releases.get(release).state == S.STOPPING


def test_the_successor_of_what_cannot_be_seen_takes_over() -> None:
    old = running()
    with pytest.raises(Failure):
        look(old, AWAY)
    new = ledger().releases.begin(a_spec(), REVISION, "")
    for state in (S.SCHEDULED, S.STARTING):
        ledger().releases.move(new, state)
    ledger().releases.take_over(a_release(new, replaced=old))
    assert ledger().releases.get(old).state == S.STOPPING
    assert ledger().releases.get(new).state == S.RUNNING
