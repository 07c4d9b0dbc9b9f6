"""What goes wrong with a run below another one is its own, also where Prefect does not answer."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from prefect.client.schemas.objects import State
from prefect.exceptions import PrefectHTTPStatusError
from prefect.states import Completed, Failed

from flows import subflows as below
from flows.apply_models import _ModelQueue
from moorage.adapters.prefect.api_errors import is_server_trouble
from moorage.common.failures import Cause, Failure
from moorage.inventory.fleet import Fleet
from moorage.operations.history.desired import Applied
from moorage.releases.states import ReleaseState
from tasks import context
from tasks.map_hosts import gather_all
from tests.builders import REVISION, a_release, a_spec

MODEL = "llama"


@pytest.fixture(autouse=True)
def _short_pauses(own_home: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001
    monkeypatch.setattr(below, "PAUSES_SECONDS", (0.01, 0.01))


def answered(code: int) -> PrefectHTTPStatusError:
    """What Prefect's client raises where its server answers so."""
    request = httpx.Request("POST", "http://prefect/api/flow_runs/")
    response = httpx.Response(code, request=request)
    return PrefectHTTPStatusError(f"{code}", request=request, response=response)


class Runs:
    """Begins of a run: each raises or returns what is next; the last one goes on for ever."""

    def __init__(self, *ends: State[Any] | BaseException) -> None:
        self._ends, self.begun = list(ends), 0

    async def __call__(self, *_args: object, **_options: object) -> State[Any]:
        end = self._ends[min(self.begun, len(self._ends) - 1)]
        self.begun += 1
        if isinstance(end, BaseException):
            raise end
        return end


def deployed(runs: Runs) -> Applied:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(below, "DEPLOY", runs)
        return asyncio.run(below.deploy_subflow(a_spec(name=MODEL), Fleet(), ""))


BROKEN = [
    answered(503),
    answered(429),
    answered(500),
    httpx.ConnectError("refused"),
    httpx.ReadTimeout("late"),
    RuntimeError("Failed to reach API at http://prefect/api/"),
]


@pytest.mark.parametrize("trouble", BROKEN, ids=repr)
def test_a_run_that_did_not_come_to_be_is_begun_again(trouble: Exception) -> None:
    runs = Runs(trouble, trouble, Completed(message="serves", data="llama.v1"))
    assert deployed(runs).outcome == "done"
    assert runs.begun == 3


def test_where_the_server_stays_away_the_model_has_failed_and_says_why() -> None:
    runs = Runs(answered(503))
    ended = deployed(runs)
    assert (ended.outcome, ended.cause) == ("failed", Cause.SERVER_UNAVAILABLE)
    assert ended.exit_code
    assert runs.begun == 3


def test_what_fails_for_another_reason_is_not_begun_again() -> None:
    for error, cause in (
        (answered(404), Cause.SERVER_REFUSED),
        (KeyError("mistake"), "internal"),
        (Failure(Cause.NO_FIT, "too large"), Cause.NO_FIT),
    ):
        runs = Runs(Failed(message="it failed", data=error))
        ended = deployed(runs)
        assert (ended.outcome, ended.cause, runs.begun) == ("failed", cause, 1)
        assert deployed(Runs(error)).cause == cause, "raised instead of returned"


def test_an_interruption_is_the_end_of_all() -> None:
    with pytest.raises(KeyboardInterrupt):
        deployed(Runs(KeyboardInterrupt()))


@pytest.mark.parametrize("serves", [True, False])
def test_a_run_that_had_begun_a_release_is_told_by_the_ledger_and_never_done_twice(
    serves: bool,
) -> None:
    class Begins(Runs):
        async def __call__(self, *_args: object, **_options: object) -> State[Any]:
            spec = a_spec(name=MODEL)
            releases = context.ledger().releases
            identity = releases.begin(spec, REVISION, "")
            if serves:
                take_over(identity)
            else:
                releases.move(identity, ReleaseState.ERROR, "interrupted")
            return await super().__call__()

    runs = Begins(answered(503))
    ended = deployed(runs)
    assert runs.begun == 1
    assert ended.release == f"{MODEL}.v1"
    assert ended.outcome == ("done" if serves else "failed")
    assert "did not take the end" in ended.message


def test_a_retirement_is_done_again_whatever_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs(answered(503), Completed(message="retired", data="llama.v1"))
    monkeypatch.setattr(below, "RETIRE", runs)
    ended = asyncio.run(below.retire_subflow(MODEL))
    assert (ended.outcome, ended.release, runs.begun) == ("done", "llama.v1", 2)


def test_what_a_client_did_wrong_is_no_trouble_of_the_server() -> None:
    assert not is_server_trouble(answered(422))
    assert not is_server_trouble(ValueError("mistake"))


def take_over(identity: str) -> None:
    releases = context.ledger().releases
    for state in (ReleaseState.SCHEDULED, ReleaseState.DOWNLOADING, ReleaseState.STARTING):
        releases.move(identity, state)
    releases.take_over(a_release(id=identity, model=MODEL, spec=a_spec(name=MODEL)))


async def test_models_under_way_end_before_the_run_that_began_them() -> None:
    ended: list[str] = []

    async def quick() -> Applied:
        await asyncio.Event().wait()
        return Applied(model="quick", action="deploy", outcome="deployed", message="")

    async def slow() -> Applied:
        try:
            return await quick()
        finally:
            await asyncio.sleep(0.05)
            ended.append("slow")

    queue = _ModelQueue(2, stop_on_failure=False)
    jobs = [("quick", quick), ("slow", slow), ("waits", quick)]
    runs = (queue.run("deploy", model, job) for model, job in jobs)
    run = asyncio.create_task(gather_all(*runs))
    await asyncio.sleep(0.01)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert ended == ["slow"]
