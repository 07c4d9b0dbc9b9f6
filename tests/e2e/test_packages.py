"""Packages that are installed into a real vLLM container before the engine starts."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import VLLM_VERSION
from tests.e2e.wheels import WheelIndex
from tests.e2e.workplace import Workplace
from tests.openai_client import openai_client

pytestmark = [pytest.mark.vllm, pytest.mark.docker, pytest.mark.server]

PLUGIN = """\
def register():
    print("acme-plugin 1.2 is part of this engine", flush=True)
"""
ENTRY_POINTS = "[vllm.general_plugins]\nacme = acme_plugin:register\n"
SCRIPT = files("moorage.engines").joinpath("prepare.sh").read_text()


@pytest.fixture
def index(tmp_path: Path, docker: None) -> Iterator[WheelIndex]:  # noqa: ARG001
    with WheelIndex(tmp_path / "index") as served:
        served.add("acme-plugin", "1.2", PLUGIN, ENTRY_POINTS)
        yield served


def spec_of(workplace: Workplace, image: str, **engine: Any) -> Path:
    own = {
        "name": "vllm",
        "runtime": "docker",
        "version": VLLM_VERSION,
        "image": image,
        "args": ["--enforce-eager"],
        "shm": "512MiB",
    }
    return workplace.spec(engine={**own, **engine}, placement={"accelerators": 0}, context=1024)


def test_a_plugin_out_of_a_private_index_is_part_of_the_engine_that_answers(
    workplace: Workplace,
    vllm_image: str,
    index: WheelIndex,
) -> None:
    spec = spec_of(workplace, vllm_image, packages=["acme-plugin >= 1, < 2"], env=index.environment)
    planned = workplace.run("plan", spec).stdout
    assert "acme-plugin>=1,<2" in planned

    name = workplace.named("tiny")
    release = workplace.json("deploy", spec)["release"]
    (container,) = release["plan"]["containers"]
    assert container["preparation"]["packages"] == ["acme-plugin>=1,<2"]
    assert any(path.endswith(".whl") for path in index.requests)
    log = workplace.run("logs", name, "-n", "2000").stdout
    assert "moorage-prepare: pip installs acme-plugin>=1,<2" in log
    assert "acme-plugin 1.2 is part of this engine" in log

    client = openai_client(release["workloads"][0]["endpoint"])
    answer = client.chat.completions.create(
        model=name, messages=[{"role": "user", "content": "hello"}], max_tokens=4
    )
    assert answer.usage
    assert answer.usage.completion_tokens == 4
    # The script has become the engine: nothing stands between it and a signal.
    running = _docker("top", release["workloads"][0]["name"], "-eo", "pid,args").splitlines()
    programs = [line.split()[1].rpartition("/")[2] for line in running[1:]]
    assert {"docker-init", "python3"} <= set(programs)  # by number, which may have begun again
    assert "sh" not in programs
    workplace.run("retire", name)
    assert workplace.is_clean()


def test_a_package_that_is_nowhere_is_the_cause_that_is_told(
    workplace: Workplace,
    vllm_image: str,
    index: WheelIndex,
) -> None:
    spec = spec_of(workplace, vllm_image, packages=["acme-plugin==9"], env=index.environment)
    error = workplace.json("deploy", spec, code=6)["error"]
    assert error["cause"] == "packages-not-installed"
    assert "acme-plugin==9" in error["evidence"]
    assert "No matching distribution" in error["log_tail"]
    assert workplace.is_clean()


def test_the_libraries_for_newer_drivers_are_taken_away(vllm_image: str) -> None:
    made = "mkdir -p /usr/local/cuda-12.9/compat/lib /usr/local/cuda-12.9/lib64"
    begin = f'{made}; ln -s cuda-12.9 /usr/local/cuda; exec sh -c "$@"'
    words = ("moorage-prepare", "--without-cuda-compat", "--", "ls", "/usr/local/cuda-12.9")
    inside = ("-c", begin, "first", SCRIPT, *words)
    assert _docker("run", "--rm", "--entrypoint", "sh", vllm_image, *inside).split() == ["lib64"]


def _docker(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True).stdout
