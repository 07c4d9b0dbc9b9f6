"""A GGUF file on llama.cpp, as a process of this machine and in a container."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from moorage.memory.gguf import PROMPT_CACHE
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.process, pytest.mark.server]

AS_PROGRAM = {"runtime": "process"}
LLAMA = {"name": "llama.cpp", **AS_PROGRAM}
PROMPT = "Every ship finds"


def test_a_gguf_file_is_served_replaced_and_retired(workplace: Workplace, tiny_gguf: Path) -> None:
    spec = workplace.spec(source=f"file://{tiny_gguf}", engine=AS_PROGRAM)
    planned = workplace.json("plan", spec)
    assert planned["placement"]["engine"] == "llama.cpp"  # for the weights are GGUF

    first = workplace.json("deploy", spec)["release"]
    assert first["plan"] == planned["plan"]
    assert first["readiness"][0]["probes"][-1]["phase"] == "answered"
    text = completion(workplace, first)
    (seat,) = first["placement"]["seats"]
    terms = {term["name"]: term["bytes"] for term in seat["cpu_need"]["terms"]}
    assert seat["ram_bytes"] == sum(terms.values())
    assert terms["prompt_cache"] == PROMPT_CACHE

    second = workplace.json(
        "deploy", workplace.spec(source=f"file://{tiny_gguf}", engine=AS_PROGRAM, context=512)
    )
    assert second["release"]["replaced"] == first["id"]
    assert completion(workplace, second["release"]) == text
    workplace.run("retire", workplace.named("tiny"))
    assert workplace.is_clean()


@pytest.mark.docker
def test_a_gguf_file_is_served_from_a_container(
    workplace: Workplace, tiny_gguf: Path, llama_image: str
) -> None:
    engine = {"name": "llama.cpp", "runtime": "docker", "image": llama_image, "shm": "64MiB"}
    fields: dict[str, Any] = {"source": f"file://{tiny_gguf}", "placement": {"accelerators": 0}}
    first = workplace.json("deploy", workplace.spec(engine=engine, **fields))["release"]
    text = completion(workplace, first)
    (container,) = first["plan"]["containers"]
    assert container["memory_bytes"] == first["placement"]["seats"][0]["ram_bytes"]
    # Of the folder that the file lies in, the engine gets nothing else.
    assert [mount["source"] for mount in container["mounts"]] == [str(tiny_gguf)]

    fewer = {**engine, "args": ["--cache-type-k q8_0", "--threads 2"]}
    second = workplace.json("deploy", workplace.spec(engine=fewer, **fields))["release"]
    assert second["replaced"] == first["id"]
    assert completion(workplace, second)
    assert workplace.containers() == [f"moorage-{second['id']}-r0-leader"]
    back = workplace.json("rollback", workplace.named("tiny"))["release"]
    assert completion(workplace, back) == text
    workplace.run("retire", workplace.named("tiny"))
    assert workplace.is_clean()


def test_greedy_text_is_that_of_transformers(workplace: Workplace, tiny_gguf: Path) -> None:
    spec = workplace.spec("gguf", source=f"file://{tiny_gguf}", engine=LLAMA)
    ours = workplace.json("deploy", spec)["release"]
    other = workplace.spec("tiny", engine={"name": "transformers", "runtime": "process"})
    theirs = workplace.json("deploy", other)["release"]
    assert completion(workplace, ours, "gguf") == completion(workplace, theirs)
    workplace.run("retire", workplace.named("gguf"))
    workplace.run("retire", workplace.named("tiny"))


def test_one_of_several_quantizations_is_named_by_a_pattern(
    workplace: Workplace, tiny_gguf: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "several"
    folder.mkdir()
    for name in ("tiny-Q8_0.gguf", "tiny-F32.gguf"):
        shutil.copy(tiny_gguf, folder / name)
    source = f"file://{folder}"
    error = workplace.json("plan", workplace.spec(source=source, engine=LLAMA), code=4)["error"]
    assert "which of several GGUF models" in error["detail"]
    assert "files" in error["suggestion"]
    plan = workplace.json("plan", workplace.spec(source=source, engine=LLAMA, files="*F32*"))[
        "plan"
    ]
    command = [word for flag in plan["containers"][0]["command"] for word in flag["tokens"]]
    assert command[command.index("--model") + 1] == f"{folder}/tiny-F32.gguf"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--ctx-sise 512"], "Did you mean `--ctx-size`?"),
        (["--temp=0.5"], "Write `--temp 0.5`."),
        (["--tools all"], "run programs"),
        (["--cache-type-k q3"], "q3"),
        (["--grammar root"], "runtime: docker"),
    ],
)
def test_what_the_server_does_not_take_is_refused_before_it_starts(
    workplace: Workplace, tiny_gguf: Path, arguments: list[str], why: str
) -> None:
    engine = {**LLAMA, "args": arguments}
    spec = workplace.spec(source=f"file://{tiny_gguf}", engine=engine)
    error = workplace.json("plan", spec, code=2)["error"]
    assert why in f"{error['detail']} {error['suggestion']}"
    assert error["detail"].startswith("engine.args: --")


def completion(workplace: Workplace, release: dict[str, Any], name: str = "tiny") -> str:
    answer = httpx.post(
        f"{release['workloads'][0]['endpoint']}/v1/completions",
        json={
            "model": workplace.named(name),
            "prompt": PROMPT,
            "max_tokens": 12,
            "temperature": 0,
        },
        timeout=60,
    )
    text: str = answer.json()["choices"][0]["text"]
    assert text
    return text
