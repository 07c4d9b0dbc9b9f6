"""A real vLLM 0.32.0: of the image, else of the environment that it is built from."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, TypedDict

import pytest

ORACLE = Path(__file__).with_name("vllm_oracle.py")
IMAGE = "moorage/vllm-cpu:0.32.0"
SECONDS = 300


class Verdicts(TypedDict):
    """What vLLM says to each entry, None where it takes it; and the options of its server."""

    lines: list[str | None]
    documents: list[str | None]
    server: list[str]


def ask_vllm(lines: list[list[str]], documents: list[dict[str, Any]]) -> Verdicts:
    """What vLLM says to command lines (from `serve` on) and to contents of model.json files."""
    question = json.dumps({"lines": lines, "documents": documents})
    done = subprocess.run(
        _oracle(), input=question, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr[-2000:]
    verdicts: Verdicts = json.loads(done.stdout)
    return verdicts


def _oracle() -> list[str]:
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
