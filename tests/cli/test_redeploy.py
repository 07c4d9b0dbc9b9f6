"""What `moorage redeploy` refuses before any flow is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.app import app
from moorage.common.failures import ExitCode


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--wave", "0"), "--wave 0: allowed: a number such as 4"),
        (("--wave", "150%"), "--wave 150%: allowed"),
        (("--stop-at", "x"), "--stop-at x: allowed: first, never"),
        (("--files", "nowhere"), "--files nowhere: the folder does not exist"),
        (("tiny-*",), "--all, or tiny-* exclude each other"),
        (("--label", "tier"), "--label tier: a label is KEY=VALUE"),
        (("--force",), "no terminal to confirm on: Redeploy every running model that changed?"),
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
