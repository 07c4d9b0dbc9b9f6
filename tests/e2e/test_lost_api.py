"""Whatever Prefect's API answers, a command ends with its code and leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.common.failures import ExitCode
from tests.api_proxy import ANSWERS, ApiProxy, Moment, always
from tests.e2e.conftest import process_engine
from tests.e2e.workplace import Workplace
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.process, pytest.mark.server]


def at(part: str, text: bytes = b"") -> Moment:
    return lambda method, path, body: method == "POST" and part in path and text in body


AS_IT_BEGINS, AS_IT_ENDS = at("/set_state", b"RUNNING"), at("/set_state", b"FAILED")

CASES: dict[str, tuple[str, Moment, str]] = {
    "nobody is let in": ("401", always, "bad-setting"),
    "another server": ("a page", always, "server-unavailable"),
    "its database is locked": ("503", AS_IT_BEGINS, "server-unavailable"),
    "the run is deleted": ("404", AS_IT_BEGINS, "server-refused"),
    "an answer is cut": ("cut JSON", AS_IT_BEGINS, "server-refused"),
    "an answer of something else": ("other JSON", AS_IT_BEGINS, "server-refused"),
    "no answer": ("nothing", AS_IT_BEGINS, "server-unavailable"),
    "an error as it ends": ("500", AS_IT_ENDS, "unknown-release"),
    "a page as it ends": ("a page", AS_IT_ENDS, "unknown-release"),
}


def broken(
    workplace: Workplace,
    server: PrefectServer,
    answer: str,
    since: Moment,
    *command: object,
) -> dict[str, Any]:
    """What a command tells on whose way to its server an answer is another one."""
    with ApiProxy(server.url, ANSWERS[answer], since) as proxy:
        workplace.environment["PREFECT_API_URL"] = proxy.url
        workplace.environment["PREFECT_CLIENT_MAX_RETRIES"] = "0"
        done = workplace.run(*command, "--json", code=None)
        assert proxy.is_broken
    assert "Traceback" not in done.stderr
    assert done.returncode not in (0, ExitCode.INTERNAL)
    reply: dict[str, Any] = json.loads(done.stdout)["error"]
    assert reply["exit_code"] == done.returncode
    return reply


@pytest.mark.parametrize(("answer", "since", "cause"), CASES.values(), ids=CASES)
def test_a_command_ends_with_its_code(
    workplace: Workplace, prefect_server: PrefectServer, answer: str, since: Moment, cause: str
) -> None:
    workplace.home.mkdir()
    words = ("lora", "unload", workplace.named("nobody"), "poet")
    reply = broken(workplace, prefect_server, answer, since, *words)
    assert reply["cause"] == cause


@pytest.mark.parametrize("answer", ["401", "a page"])
def test_a_deploy_whose_pages_are_not_taken_serves_and_says_that_its_end_is_not_known(
    workplace: Workplace, prefect_server: PrefectServer, lifecycle_program: Path, answer: str
) -> None:
    spec = workplace.spec(engine=process_engine(lifecycle_program))
    reply = broken(workplace, prefect_server, answer, at("/artifacts/"), "deploy", spec)
    assert reply["cause"] == "server-refused"
    assert "moorage status" in reply["suggestion"]
    [row] = workplace.releases()
    assert row.state == "running"
    assert not workplace.ledger.locks.is_held(row.model)


def test_a_model_that_waits_for_approval_is_not_begun_when_the_question_is_refused(
    workplace: Workplace, prefect_server: PrefectServer, lifecycle_program: Path
) -> None:
    request = {"approval": "required"}
    spec = workplace.spec(engine=process_engine(lifecycle_program), redeploy=request)
    reply = broken(workplace, prefect_server, "404", at("/set_state", b"PAUSED"), "deploy", spec)
    assert reply["cause"] == "server-refused"
    assert workplace.releases() == []
    assert workplace.is_clean()


@pytest.mark.parametrize("answer", ["404", "cut JSON"])
def test_a_deploy_that_fails_meanwhile_is_undone_and_tells_its_own_failure(
    workplace: Workplace, prefect_server: PrefectServer, lifecycle_program: Path, answer: str
) -> None:
    spec = workplace.spec(engine=process_engine(lifecycle_program, "die"))
    reply = broken(workplace, prefect_server, answer, at("/artifacts/"), "deploy", spec)
    assert reply["cause"] == "engine-unsupported-model"
    [row] = workplace.releases()
    assert (row.state, row.cause) == ("error", reply["cause"])
    assert not workplace.ledger.locks.is_held(row.model)
    assert workplace.is_clean()
