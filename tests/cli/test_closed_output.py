"""Output whose reader has ended, such as `moorage show llama | head -1`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS


@pytest.mark.parametrize(
    "arguments",
    [["status", "--json"], ["policy", "show"], ["explain", "--json-schema", "spec"]],
    ids=["json", "a table", "text"],
)
def test_a_command_without_a_reader_ends_as_by_a_closed_pipe(
    arguments: list[str], tmp_path: Path
) -> None:
    unread, written = os.pipe()
    os.close(unread)
    with os.fdopen(written, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "moorage.cli", *arguments],
            env={**os.environ, "MOORAGE_HOME": str(tmp_path)},
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")
