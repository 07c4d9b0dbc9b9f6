"""SGLang as a process: a stand-in that reads its line with SGLang's own parser."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e import sglang_server
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.engines.sglang.wheel import unpacked_wheel
from tests.openai_client import openai_client

pytestmark = [pytest.mark.process, pytest.mark.server]

ENGINE = {"name": "sglang", "runtime": "process"}
SMI = """#!/bin/sh
case "$*" in
  *--query-gpu*) echo "0, GPU-aaaa, NVIDIA H100, 81559, 81000, 559, 580.65.06, Disabled";;
  topo*) ;;
  *) echo "| NVIDIA-SMI 580.65.06   CUDA Version: 13.0  |";;
esac
"""


@pytest.fixture
def gpu_place(workplace: Workplace) -> Workplace:
    """A machine that tells of a GPU, and has a program `sglang`."""
    programs = workplace.folder / "bin"
    programs.mkdir()
    server = f'exec {sys.executable} -m {sglang_server.__name__} {unpacked_wheel()} "$@"'
    _write(programs / "sglang", f"#!/bin/sh\nexport PYTHONPATH={REPOSITORY}\n{server}\n")
    _write(programs / "nvidia-smi", SMI)
    workplace.environment["PATH"] = f"{programs}{os.pathsep}{workplace.environment['PATH']}"
    return workplace


def test_a_model_is_deployed_answers_is_replaced_and_retired(gpu_place: Workplace) -> None:
    name = gpu_place.named("tiny")

    first = gpu_place.json("deploy", gpu_place.spec(engine=ENGINE))
    assert first["outcome"] == "completed"
    endpoint = first["release"]["workloads"][0]["endpoint"]
    client = openai_client(endpoint)
    answer = client.chat.completions.create(
        model=name, messages=[{"role": "user", "content": "hello"}], max_tokens=1
    )
    assert answer.choices[0].message.content == "ok"

    record = gpu_place.json("show", name)
    line = [w for flag in record["plan"]["containers"][0]["command"] for w in flag["tokens"]]
    assert 0 < float(line[line.index("--mem-fraction-static") + 1]) < 1
    # Of the exact prediction, out of the model's own files.
    assert "--chunked-prefill-size" in line

    changed = gpu_place.json("deploy", gpu_place.spec(engine=ENGINE, context=64))
    assert changed["release"]["replaced"] == first["release"]["id"]
    assert gpu_place.running() == {f"moorage-{name}.v2-r0-leader"}

    gpu_place.run("retire", name)
    assert gpu_place.is_clean()


def test_adapters_are_loaded_and_unloaded_while_it_serves(
    gpu_place: Workplace, make_lora: Callable[..., Path]
) -> None:
    name, source = gpu_place.named("tiny"), f"file://{make_lora('poet')}"
    spec = gpu_place.spec(
        engine=ENGINE,
        lora=[{"name": "poet", "source": source}],
        lora_updates={"max": 2, "rank": 16},
    )
    release = gpu_place.json("deploy", spec)["release"]
    client = openai_client(release["workloads"][0]["endpoint"])

    def says(model: str) -> str | None:
        answer = client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "hello"}], max_tokens=1
        )
        return answer.choices[0].message.content

    gpu_place.json("lora", "load", name, f"later={source}")
    assert [says(f"{name}:{adapter}") for adapter in ("poet", "later")] == ["poet", "later"]
    routes = gpu_place.json("endpoint", "--all")["data"]
    assert [one["id"] for one in routes] == [name, f"{name}:later", f"{name}:poet"]

    gpu_place.run("lora", "unload", name, "later")
    from openai import BadRequestError  # noqa: PLC0415

    with pytest.raises(BadRequestError, match="not loaded: later"):
        says(f"{name}:later")
    assert [row["name"] for row in gpu_place.json("lora", "list", name)] == ["poet"]

    gpu_place.run("retire", name)
    assert gpu_place.is_clean()


def test_an_argument_that_sglang_lacks_is_refused_before_the_start(gpu_place: Workplace) -> None:
    spec = gpu_place.spec(engine={**ENGINE, "version": "0.5.23", "args": ["--radix-evict-all"]})

    done = gpu_place.run("deploy", spec, code=None)

    assert done.returncode
    output = done.stdout + done.stderr
    assert "SGLang 0.5.23 does not know it" in output
    assert gpu_place.is_clean()


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
