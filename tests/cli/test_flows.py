"""How the command line shows what ends a flow from outside, and a flow's question."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Semaphore
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from prefect import Flow, context
from prefect.client.schemas.objects import State
from prefect.exceptions import TerminationSignal
from prefect.states import Completed
from rich.console import Console
from typer.testing import CliRunner

from moorage.adapters.gateway.processes import GatewayProcesses
from moorage.adapters.hosts.processes import ProcessRuntime
from moorage.adapters.ledger.locks import Owner
from moorage.adapters.prefect.home_server import RunningServer
from moorage.adapters.system.environment import given_environment
from moorage.adapters.system.process import command_line_user
from moorage.adapters.system.settings import Settings
from moorage.cli import flows
from moorage.cli.app import app
from moorage.cli.flows import run_flow
from moorage.cli.options import existing, require_consent
from moorage.cli.output import exit_on_failure
from moorage.cli.step_printer import StepPrinter
from moorage.common.failures import Cause, Failure
from moorage.operations.redeploy.intent import Answer, Question
from moorage.releases.release import StepRecord
from tests.waiting import PATIENCE_SECONDS

FLOW = "flows.deploy_model"
QUESTION = Question(models=("tiny",), plan="It would replace tiny.v1.", seconds=60)


@pytest.fixture(autouse=True)
def no_unreported_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flows of other tests of this process may have ended without a server that heard of it."""
    monkeypatch.setattr("flows.flow_context._ends", {})


async def losing_its_api() -> State[None]:
    raise httpx.ConnectError("All connection attempts failed")


def test_a_flow_that_loses_prefect_ends_at_once_with_a_clear_cause(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "_exit", sys.exit)
    with pytest.raises(SystemExit) as ended:
        exit_on_failure(lambda: run_flow(losing_its_api, FLOW, as_json=True), as_json=True)
    error = json.loads(capsys.readouterr().out)["error"]
    assert ended.value.code == error["exit_code"]
    assert error["cause"] == "server-unavailable"
    assert "Prefect's API failed the flow run" in error["detail"]
    assert "PREFECT_API_URL" in error["suggestion"]


@pytest.mark.parametrize("became", [ValueError, RuntimeError, KeyError])
def test_whatever_a_library_makes_of_a_signal_it_is_an_interruption(
    became: type[Exception],
) -> None:
    async def interrupted() -> State[None]:
        try:
            raise TerminationSignal(signal=15)
        except TerminationSignal:
            raise became("odd") from None

    with pytest.raises(KeyboardInterrupt, match="unfinished work is undone"):
        run_flow(interrupted, FLOW, as_json=True)


def test_only_an_interrupted_flow_is_said_to_undo_its_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def wait() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit):
        exit_on_failure(wait, as_json=True)
    assert json.loads(capsys.readouterr().out)["error"]["detail"] == "stopped by a signal"


async def losing_its_terminal() -> State[str]:
    signal.raise_signal(signal.SIGHUP)
    await asyncio.sleep(0)
    return Completed(data="done")


def test_a_closed_terminal_ends_a_flow_as_sigterm_does() -> None:
    before = signal.getsignal(signal.SIGHUP)
    with pytest.raises(KeyboardInterrupt, match="unfinished work is undone"):
        run_flow(losing_its_terminal, FLOW, as_json=True)
    assert signal.getsignal(signal.SIGHUP) == before


def test_a_command_that_ignores_the_end_of_its_terminal_goes_on() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    try:
        assert run_flow(losing_its_terminal, FLOW, as_json=True).result == "done"
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Variables of a command that keeps Prefect's server; what it adds ends with the test."""
    before = context.GLOBAL_SETTINGS_CONTEXT
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for name, value in {"HOME": "home", "SERVER": "kept"}.items():
        monkeypatch.setenv(f"MOORAGE_{name}", str(tmp_path / value) if name == "HOME" else value)
    context.refresh_global_settings_context()  # an earlier test may have left a server's address
    yield
    context.GLOBAL_SETTINGS_CONTEXT = before


@pytest.mark.usefixtures("environment")
def test_each_flow_of_a_command_uses_the_server_that_runs_then_and_no_later_program_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, forked = given_environment(), Mock()
    process = Owner(machine="", pid=1, started_at=1)
    urls = [f"http://127.0.0.1:{port}/api" for port in (1, 2)]
    servers = [RunningServer(url=url, process=process) for url in urls]
    monkeypatch.setattr(flows, "kept_server", Mock(side_effect=servers))
    monkeypatch.setattr(flows, "fork_later_commands", forked)
    monkeypatch.setattr(ProcessRuntime, "start", service := Mock())

    async def reviving_a_gateway() -> State[str]:
        GatewayProcesses(tmp_path, "main").start_service()
        return Completed(data=os.environ["PREFECT_API_URL"])

    results = [run_flow(reviving_a_gateway, FLOW, as_json=True).result for _ in servers]
    assert results == urls
    assert [call.args for call in forked.call_args_list] == [(given,)] * 2
    for call in service.call_args_list:
        assert {**given, **call.args[1]} == {**given, "MOORAGE_HOME": str(tmp_path)}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("name", "hint"), [("lama", "Did you mean 'llama'?"), ("zzz", "Known specs: llama, qwen.")]
)
def test_a_name_without_a_file_is_told_with_those_that_there_are(name: str, hint: str) -> None:
    with pytest.raises(Failure, match=f"neither deployments/{name}.yaml") as refused:
        existing(Path(name))
    assert refused.value.suggestion == hint


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the specs of llama and qwen."""
    (tmp_path / "deployments").mkdir()
    for name in ("llama", "qwen", "fleet"):
        (tmp_path / "deployments" / f"{name}.yaml").touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["MOORAGE_PROBE_SECONDS", "MOORAGE_HUB_OFFLINE"])
def test_a_wrong_setting_is_told_by_the_name_of_its_variable(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "soon")
    with pytest.raises(SystemExit):
        exit_on_failure(Settings, as_json=True)
    assert json.loads(capsys.readouterr().out)["error"]["detail"].startswith(
        f"{name}: found 'soon'"
    )


class Terminal(io.StringIO):
    """What a person types, or sees."""

    def isatty(self) -> bool:
        return True


def answer() -> Answer | None:
    return StepPrinter(Console(file=io.StringIO())).ask(QUESTION)


def test_questions_that_come_at_once_are_asked_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the answer to the plan at the bottom of the screen goes to the first one."""
    prompts, free = list[str](), Semaphore(1)

    def confirm(prompt: str, **_: Any) -> bool:
        assert free.acquire(blocking=False), "another question is open"
        prompts.append(prompt)
        time.sleep(0.02)
        free.release()
        return "small" in prompt

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr("moorage.cli.output.typer.confirm", confirm)
    printer, models = StepPrinter(Console(file=io.StringIO())), ("small", "prod", "other")
    questions = [QUESTION.model_copy(update={"models": (model,)}) for model in models]
    with ThreadPoolExecutor(len(models)) as pool:
        answers = list(pool.map(printer.ask, questions))
    assert sorted(prompts) == sorted(f"Approve {model}?" for model in models)
    assert [bool(one and one.approve) for one in answers] == [True, False, False]


def test_a_question_that_is_left_is_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, written = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stdin", Terminal())  # it has ended, as after Ctrl-D
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(sys, "stdout", written)
    with pytest.raises(Failure, match="not answered: Approve") as failure:
        answer()
    assert failure.value.cause is Cause.INTERRUPTED
    with pytest.raises(Failure, match="not answered: Apply this"):
        require_consent("Apply this?", yes=False, as_json=False)
    assert "Apply this? [y/N]" in shown.getvalue()
    assert not written.getvalue().strip()


def test_where_nobody_is_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert answer() is None


@pytest.mark.parametrize(("typed", "approve"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_person_sees_the_plan_and_answers(
    monkeypatch: pytest.MonkeyPatch, typed: str, approve: bool
) -> None:
    seen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", seen)
    monkeypatch.setattr(flows, "err", Console(file=seen))
    person = command_line_user().account
    assert answer() == Answer(approve=approve, note=f"by {person}")
    assert "replace tiny.v1" in seen.getvalue()


def test_a_bar_is_there_only_while_something_is_transferred() -> None:
    seen = Terminal()
    with StepPrinter(Console(file=seen, force_terminal=True, width=80)) as printer:
        printer.started("stage")
        printer.refresh()
        assert "stage" in seen.getvalue()
        assert "bytes" not in seen.getvalue()
        printer.progressed("stage", 512, 1024)
        printer.refresh()
    assert "0.5/1.0 KiB" in seen.getvalue()


class Log(io.StringIO):
    """A file that tells when somebody has written what is waited for."""

    def __init__(self, awaited: str) -> None:
        super().__init__()
        self.awaited, self.there = awaited, threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.awaited in self.getvalue():
            self.there.set()
        return written


def test_without_a_terminal_a_step_that_takes_long_says_how_far_it_is() -> None:
    log = Log("512 B of 1.0 KiB")
    with StepPrinter(Console(file=log)) as printer, printer.signs_of_life(0.001):
        printer.started("stage")
        printer.progressed("stage", 512, 1024)
        assert log.there.wait(PATIENCE_SECONDS)
    assert "… stage" in log.getvalue()


def test_a_step_that_a_signal_ends_says_so() -> None:
    log = io.StringIO()
    with StepPrinter(Console(file=log)) as printer:
        printer.ended(StepRecord(name="stage", seconds=1), asyncio.CancelledError())
    assert log.getvalue().split() == ["✗", "stage", "1.00", "s", "interrupted"]


def test_prefect_prints_no_notice_about_usage_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    assert CliRunner().invoke(app, ["server", "status"]).exit_code == 0
    assert os.environ.pop("DO_NOT_TRACK") == "1"


CALLED = {
    name
    for file in Path(flows.__file__).parent.glob("*.py")
    for name in re.findall(r'(?:call_flow|_change)\(\s*"(\w+)"', file.read_text())
}


def test_twelve_flows_are_called_by_name() -> None:
    assert len(CALLED) == 12


@pytest.mark.parametrize("name", sorted(CALLED))
def test_each_flow_that_a_command_calls_is_there(name: str) -> None:
    assert isinstance(getattr(import_module(f"flows.{name}"), name), Flow)
