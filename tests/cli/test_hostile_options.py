from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.app import app
from moorage.common.failures import ExitCode

HUGE = "1" + "0" * 400


@pytest.mark.parametrize(
    "words",
    [
        ["memory", "tiny.yaml", "--concurrency", HUGE],
        ["memory", "tiny.yaml", "--context", HUGE],
        ["memory", "tiny.yaml", "--tp", HUGE],
        ["memory", "tiny.yaml", "--accelerator", "24GiB;rm"],
        ["memory", "tiny.yaml", "--accelerator", "24,5GiB"],
        ["memory", "tiny.yaml", "--accelerator", HUGE],
        ["memory", "tiny.yaml", "--tp", "9" * 5000],
        ["models", "prune", "--keep", "500 GiB please"],
        ["models", "prune", "--older-than", f"{HUGE}d"],
        ["memory", "x" * 5000],
        ["plan", "x" * 5000],
        ["memory", "pipe"],
        ["memory", "/dev/zero"],
        ["apply", "pipe", "--dry-run"],
        ["export", "out", "--fleet", "pipe"],
        ["memory", os.fsdecode(b"\xff.yaml")],
    ],
    ids=lambda words: " ".join(map(ascii, words))[:50],
)
def test_a_hostile_word_is_bad_input(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path / "home"))
    os.mkfifo("pipe")
    Path("tiny.yaml").write_text(f"name: tiny\nsource: file://{tmp_path}\n")
    done = CliRunner().invoke(app, words)
    assert done.exit_code == ExitCode.BAD_INPUT, done.output
