"""What `moorage redeploy` and `moorage approve` refuse before any flow is run or resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from moorage.adapters.ledger.locks import ASKS, this_process
from moorage.adapters.prefect import approvals
from moorage.adapters.prefect.approvals import PendingApproval
from moorage.cli import redeploy
from moorage.cli.app import app
from moorage.cli.options import open_ledger
from moorage.common.failures import Cause, ExitCode
from moorage.operations.flow_result import FlowResult
from moorage.operations.reconcile.actions import Action, ActionKind, ActionOutcome

PENDING = PendingApproval(
    id="7", name="deploy llama", model="llama", requested_by="", until=None, plan=""
)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--wave", "0"), "--wave 0: allowed: a number such as 4"),
        (("--wave", "150%"), "--wave 150%: allowed"),
        (("--stop-at", "x"), "--stop-at x: allowed: first, never"),
        (("--files", "nowhere"), "--files nowhere: the folder does not exist"),
        (("tiny-*",), "--all, or tiny-* exclude each other"),
        (("--label", "tier"), "--label tier: a label is KEY=VALUE"),
        (
            ("--force",),
            "no terminal to confirm on: Redeploy every model that changed, also those that sleep?",
        ),
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(
    options: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["redeploy", "--all", *options, "--json"])
    assert result.exit_code == ExitCode.BAD_INPUT, result.output
    assert words in json.loads(result.stdout)["error"]["detail"]


def an_outcome(kind: ActionKind, **facts: Any) -> ActionOutcome:
    return ActionOutcome(action=Action(kind=kind, release="tiny.v1", reason="so"), **facts)


DONE = an_outcome(ActionKind.RESTART)
WAITS = an_outcome(ActionKind.WAIT, done=False, summary="not yet")
BUSY = an_outcome(ActionKind.UNDO, done=False, summary="another flow holds tiny")
FAILED = {"done": False, "summary": "failed: so"}
NO_FILES = an_outcome(
    ActionKind.RESTART, **FAILED, cause=Cause.PLACE_GONE, exit_code=ExitCode.MACHINE
)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ((), 0),
        ((DONE, WAITS, BUSY), 0),
        ((NO_FILES, an_outcome(ActionKind.REPLACE)), 0),
        ((NO_FILES, an_outcome(ActionKind.REPLACE, **FAILED, exit_code=ExitCode.NO_FIT)), 3),
        ((DONE, an_outcome(ActionKind.UNDO, **FAILED, exit_code=ExitCode.MACHINE), NO_FILES), 8),
    ],
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_reconcile_exits_with_the_code_of_its_first_failed_repair(
    outcomes: tuple[ActionOutcome, ...],
    code: int,
    options: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = FlowResult("Completed", "1 host", outcomes)
    monkeypatch.setattr(redeploy, "call_flow", lambda *_, **__: ended)
    done = CliRunner().invoke(app, ["reconcile", *options])
    assert done.exit_code == code, done.output
    if options:
        assert len(json.loads(done.stdout)["actions"]) == len(outcomes)


def test_an_answer_that_nobody_would_get_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    killed = this_process().model_copy(update={"started_at": 0})
    open_ledger().locks.take_all([f"{ASKS}{PENDING.id}"], "token", killed)
    monkeypatch.setattr(approvals, "find_approval", lambda _: PENDING)
    monkeypatch.setattr(approvals, "answer", lambda *_: pytest.fail("it was given to nobody"))
    result = CliRunner().invoke(app, ["approve", "llama", "--json"])
    assert result.exit_code == ExitCode.BAD_INPUT, result.output
    assert "its process is gone" in json.loads(result.stdout)["error"]["detail"]
