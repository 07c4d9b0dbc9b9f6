"""A mistake in `engine.args` is reported at once, before any slow import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

RUN = """
import sys
from typer.testing import CliRunner
from moorage.cli.app import app

result = CliRunner().invoke(app, sys.argv[1:])
print(result.output)
print("Prefect was imported" if "prefect" in sys.modules else "")
sys.exit(result.exit_code)
"""


@pytest.mark.parametrize("command", ["plan", "deploy", "memory"])
def test_a_typo_fails_before_prefect_is_imported(tmp_path: Path, command: str) -> None:
    done = run(tmp_path, command, args=["--max-modle-len 4096"])
    assert done.returncode == 2
    assert "engine.args: --max-modle-len: vLLM 0.32.0 does not know it" in done.stdout
    assert "Did you mean `--max-model-len`?" in done.stdout
    assert "Prefect was imported" not in done.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "tiny.yaml"], "nothing is made for it"


def test_the_version_of_the_spec_counts(tmp_path: Path) -> None:
    done = run(tmp_path, "plan", args=["--swap-space 4"], version="0.18.1")
    assert "vLLM 0.18.1 does not know it; it is gone since 0.18.0" in done.stdout
    done = run(tmp_path, "memory", args=["--swap-space 4"], version="0.17.1")
    assert "swap-space" not in done.stdout


def test_the_known_versions_are_listed(tmp_path: Path) -> None:
    done = invoke(tmp_path, "schema", "--json")
    known = {(row["engine"], row["version"]) for row in json.loads(done.stdout)}
    assert {("vllm", "0.18.1"), ("sglang", "0.5.23"), ("llama.cpp", "11549")} <= known


def run(folder: Path, command: str, **engine: Any) -> subprocess.CompletedProcess[str]:
    spec = {"name": "tiny", "source": f"file://{folder}", "engine": {"name": "vllm", **engine}}
    with (folder / "tiny.yaml").open("w") as file:
        YAML().dump(spec, file)
    return invoke(folder, command, str(folder / "tiny.yaml"))


def invoke(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *words],
        env={**os.environ, "MOORAGE_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
