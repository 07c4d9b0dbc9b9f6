"""What `moorage redeploy` and `moorage approve` refuse before any flow is run or resumed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.adapters.ledger.locks import ASKS, this_process
from moorage.adapters.prefect import approvals
from moorage.adapters.prefect.approvals import PendingApproval
from moorage.cli.app import app
from moorage.cli.options import open_ledger
from moorage.common.failures import ExitCode

WAITS = PendingApproval(
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


def test_an_answer_that_nobody_would_get_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    killed = this_process().model_copy(update={"started_at": 0})
    open_ledger().locks.take_all([f"{ASKS}{WAITS.id}"], "token", killed)
    monkeypatch.setattr(approvals, "find_approval", lambda _: WAITS)
    monkeypatch.setattr(approvals, "answer", lambda *_: pytest.fail("it was given to nobody"))
    result = CliRunner().invoke(app, ["approve", "llama", "--json"])
    assert result.exit_code == ExitCode.BAD_INPUT, result.output
    assert "its process is gone" in json.loads(result.stdout)["error"]["detail"]
