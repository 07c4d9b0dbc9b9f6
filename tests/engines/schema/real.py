"""The parser of a real vLLM 0.32.0: of the image, else of the environment it is built from."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ORACLE = Path(__file__).with_name("oracle.py")
IMAGE = "moorage/vllm-cpu:0.32.0"
SECONDS = 300


def refused_by_vllm(lines: list[list[str]]) -> list[str | None]:
    """What vLLM says to command lines (from `serve` on); None where it takes one."""
    done = subprocess.run(
        python_of_vllm(), input=json.dumps(lines), capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr[-2000:]
    verdicts: list[str | None] = json.loads(done.stdout)
    return verdicts


def python_of_vllm() -> list[str]:
    """The command that runs the oracle; the test is skipped where there is no vLLM."""
    if shutil.which("docker"):
        found = ["docker", "image", "inspect", IMAGE]
        if subprocess.run(found, capture_output=True, check=False).returncode == 0:
            inside = ["--network", "none", "--entrypoint", "python3", IMAGE]
            return ["docker", "run", "--rm", "-i", *inside, "-c", ORACLE.read_text()]
    cache = Path(os.environ.get("MOORAGE_BUILD_CACHE", Path.home() / ".cache/moorage/images"))
    for python in cache.glob("vllm-cpu/venv-0.32.0-*/bin/python"):
        return [str(python), str(ORACLE)]
    pytest.skip(f"neither {IMAGE} nor its environment is here: make images")
