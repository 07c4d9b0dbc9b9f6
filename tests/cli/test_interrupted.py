"""Ctrl-C before a command has begun anything."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_SECONDS

PROGRAM = """
import signal, sys
from importlib.abc import MetaPathFinder

class Finder(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == AT:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)

AT = sys.argv.pop(1)
sys.meta_path.insert(0, Finder())
signal.signal(signal.SIGINT, signal.default_int_handler)
from moorage.cli.__main__ import main
main()
"""


def interrupted_at(module: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that gets a Ctrl-C as it begins to import a module."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, module, *arguments],
        env={
            "MOORAGE_HOME": str(home),
            "MOORAGE_SERVER": "temporary",
            "PATH": "",
            "PYTHONPATH": ":".join(sys.path),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("module", ["typer", "sqlalchemy"])
def test_until_the_commands_are_loaded_it_ends_without_a_word(module: str, tmp_path: Path) -> None:
    done = interrupted_at(module, tmp_path, "status")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("module", ["prefect", "tasks.policy"])
def test_while_prefect_is_loaded_it_says_that_nothing_was_begun(
    module: str, tmp_path: Path
) -> None:
    done = interrupted_at(module, tmp_path, "reconcile", "--json")
    assert done.returncode == 130, done.stderr
    error = json.loads(done.stdout)["error"]
    assert (error["cause"], "before anything was started" in error["detail"]) == (
        "interrupted",
        True,
    )
    assert "Traceback" not in done.stderr
