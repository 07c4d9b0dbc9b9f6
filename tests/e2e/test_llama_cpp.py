"""A GGUF file on llama.cpp, as a process of this machine and in a container."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest
from safetensors.numpy import load_file, save_file

from moorage.engines.llama_cpp.options import build_of
from moorage.memory.gguf import PROMPT_CACHE
from moorage.models.files import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from tests.e2e.conftest import gguf_of, tiny_adapter
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.process, pytest.mark.server]

BUILD = build_of(version("xllamacpp"))
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

    other: dict[str, Any] = {
        "engine": {**AS_PROGRAM, "args": ["--threads-batch 2"]},
        "context": 512,
    }
    second = workplace.json("deploy", workplace.spec(source=f"file://{tiny_gguf}", **other))
    assert second["release"]["replaced"] == first["id"]
    known = second["release"]["plan"]["checked_against"]
    assert known.startswith("llama.cpp ")
    shown = workplace.run("show", second["release"]["id"]).stdout
    assert f"checked against those of {known}" in shown
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


@pytest.mark.parametrize(
    ("arguments", "stated", "mode", "proof"),
    [
        (("--pooling", "mean"), "auto", "embedding", "a vector of 64"),
        ((), "embedding", "embedding", "a vector of 64"),
        (("--arch", "qwen3", "--pooling", "rank"), "auto", "reranking", "2 scores"),
    ],
)
def test_a_model_that_embeds_or_ranks_proves_it(
    workplace: Workplace,
    tiny_llama: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    stated: str,
    mode: str,
    proof: str,
) -> None:
    file = gguf_of(tiny_llama, tmp_path / "tiny.gguf", *arguments)
    spec = workplace.spec(source=f"file://{file}", engine=AS_PROGRAM, mode=stated)
    release = workplace.json("deploy", spec)["release"]
    assert release["profile"]["mode"] == mode
    assert release["readiness"][0]["probes"][-1]["detail"] == proof
    # More tokens than llama-server computes at once by default.
    long = "a b c " * 200
    requests: dict[str, tuple[str, dict[str, Any]]] = {
        "embedding": ("embeddings", {"input": long}),
        "reranking": ("rerank", {"query": "a", "documents": [long]}),
    }
    path, body = requests[mode]
    url = f"{release['workloads'][0]['endpoint']}/v1/{path}"
    assert httpx.post(url, json={"model": "tiny", **body}, timeout=60).status_code == 200


@pytest.mark.docker
def test_an_image_of_its_own_is_asked_for_its_arguments(
    workplace: Workplace, tiny_gguf: Path, llama_image: str
) -> None:
    engine = {"name": "llama.cpp", "image": llama_image, "args": ["--thread 2"]}
    spec = workplace.spec(source=f"file://{tiny_gguf}", engine=engine)
    (warning,) = workplace.json("plan", spec)["plan"]["warnings"]
    assert f"`moorage schema llama.cpp --image {llama_image}` finds out" in warning
    workplace.run("schema", "llama.cpp", "--image", llama_image)
    error = workplace.json("plan", spec, code=2)["error"]
    assert f"--thread: llama-server {BUILD} does not know it" in error["detail"]


def test_requests_take_an_adapter_or_none_and_answer_as_the_merged_model(
    workplace: Workplace, tiny_llama: Path, tiny_gguf: Path, tmp_path: Path
) -> None:
    (merged, poet), pirate = adapters(tmp_path, tiny_llama)
    lora = [named("poet", poet), named("pirate", pirate)]
    spec = workplace.spec(source=f"file://{tiny_gguf}", engine=AS_PROGRAM, lora=lora)
    release = workplace.json("deploy", spec)["release"]
    assert "0 is poet, 1 is pirate" in release["plan"]["warnings"][0]
    assert [pin["name"] for pin in release["companions"]] == ["poet", "pirate"]
    (seat,) = release["placement"]["seats"]
    terms = {term["name"]: term["bytes"] for term in seat["cpu_need"]["terms"]}
    assert terms["lora"] > 0

    plain = completion(workplace, release)
    texts = [completion(workplace, release, lora=[{"id": id, "scale": 1}]) for id in (0, 1)]
    assert len({plain, *texts}) == 3
    # What one request computed is not what the next one continues, whatever adapter it takes.
    assert completion(workplace, release) == plain
    assert completion(workplace, release, lora=[{"id": 0, "scale": 1}]) == texts[0]

    alone = workplace.spec("merged", source=f"file://{merged}", engine=AS_PROGRAM)
    assert completion(workplace, workplace.json("deploy", alone)["release"], "merged") == texts[0]
    workplace.run("retire", workplace.named("merged"))
    workplace.run("retire", workplace.named("tiny"))


@pytest.mark.docker
def test_adapters_are_mounted_read_only(
    workplace: Workplace, tiny_gguf: Path, tmp_path: Path, llama_image: str
) -> None:
    _, poet = tiny_adapter(tmp_path, "poet")
    spec = workplace.spec(
        source=f"file://{tiny_gguf}",
        engine={"name": "llama.cpp", "runtime": "docker", "image": llama_image, "shm": "64MiB"},
        placement={"accelerators": 0},
        lora=[named("poet", poet)],
    )
    release = workplace.json("deploy", spec)["release"]
    (container,) = release["plan"]["containers"]
    mounts = {one["target"]: one for one in container["mounts"]}
    mount = mounts[f"/adapters/poet/{poet.name}"]
    assert (mount["source"], mount["read_only"]) == (str(poet), True)
    poem = completion(workplace, release, lora=[{"id": 0, "scale": 1}])
    assert completion(workplace, release) != poem
    workplace.run("retire", workplace.named("tiny"))
    assert workplace.is_clean()


def test_adapters_that_cannot_be_loaded_are_refused_before_a_start(
    workplace: Workplace, tiny_llama: Path, tiny_gguf: Path, tmp_path: Path
) -> None:
    saved, file = tiny_adapter(tmp_path, "poet")
    with_comma = Path(shutil.copy(file, tmp_path / "a,b.gguf"))
    other = gguf_of(tiny_llama, tiny_llama.with_name("qwen3.gguf"), "--arch", "qwen3")
    for source, adapter, why in (
        (tiny_gguf, saved, "lora: poet is safetensors; llama.cpp loads gguf adapters only"),
        (tiny_gguf, with_comma, "llama-server does not take the path of poet"),
        (other, file, "poet was made for a model of the architecture llama, and qwen3 is served"),
        (tiny_gguf, tiny_gguf, "general.type 'model'"),
    ):
        lora = [named("poet", adapter)]
        spec = workplace.spec(source=f"file://{source}", engine=AS_PROGRAM, lora=lora)
        assert why in workplace.json("plan", spec, code=None)["error"]["detail"]


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
    plan = workplace.json("plan", workplace.spec(source=source, engine=LLAMA, files="*F32*"))
    assert served_file(plan) == f"{folder}/tiny-F32.gguf"


def test_the_largest_quantization_that_fits_is_served_and_stays_chosen(
    workplace: Workplace, tiny_llama: Path, tiny_gguf: Path, tmp_path: Path
) -> None:
    folder = quantized(tmp_path / "several", tiny_llama, tiny_gguf)
    fields: dict[str, Any] = {"source": f"file://{folder}", "engine": LLAMA, "files": "auto"}
    largest = workplace.json("plan", workplace.spec(**fields))
    assert largest["files"]["pattern"] == "tiny-Q8_0.gguf"
    (seat,) = largest["placement"]["seats"]
    sizes = [one["bytes"] for one in largest["files"]["verdicts"]]
    limit = seat["ram_bytes"] - (sizes[0] - sizes[1]) // 2

    spec = workplace.spec(**fields, placement={"ram": limit})
    planned = workplace.json("plan", spec)
    first = workplace.json("deploy", spec)["release"]
    assert (first["files"], first["plan"]) == (planned["files"], planned["plan"])
    refused = {one["name"]: one["refusal"] for one in first["files"]["verdicts"]}
    assert refused["tiny-Q8_0.gguf"].endswith("placement.ram states no more")
    assert refused["tiny-Q6_K.gguf"] == ""
    assert refused["tiny-Q4_0.gguf"] == "smaller than the chosen one"
    assert first["spec"]["files"] == "auto"
    assert completion(workplace, first)
    shown = workplace.run("show", workplace.named("tiny")).stdout
    assert "Quantizations" in shown
    assert "placement.ram states" in shown

    same = workplace.json("deploy", spec)
    assert same["release"]["id"] == first["id"]
    second = workplace.json("deploy", workplace.spec(**fields))["release"]
    assert second["files"]["pattern"] == "tiny-Q8_0.gguf"
    back = workplace.json("rollback", workplace.named("tiny"))["release"]
    assert back["files"] == first["files"]
    assert served_file(back) == f"{folder}/tiny-Q6_K.gguf"
    workplace.run("retire", workplace.named("tiny"))
    assert workplace.is_clean()


def test_where_no_quantization_fits_each_is_named_with_its_need(
    workplace: Workplace, tiny_llama: Path, tiny_gguf: Path, tmp_path: Path
) -> None:
    folder = quantized(tmp_path / "several", tiny_llama, tiny_gguf)
    spec = workplace.spec(
        source=f"file://{folder}", engine=LLAMA, files="auto", placement={"ram": "64MiB"}
    )
    error = workplace.json("deploy", spec, code=3)["error"]
    for one in error["files"]["verdicts"]:
        assert "64.0 MiB available; placement.ram states no more" in one["refusal"]
    assert "tiny-Q4_0.gguf" in error["detail"]
    record = workplace.json("show", f"{workplace.named('tiny')}.v1")
    assert record["files"] == error["files"]
    assert workplace.is_clean()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--ctx-sise 512"], "Did you mean `--ctx-size`?"),
        (["--temp=0.5"], "Write `--temp 0.5`."),
        (["--tools all"], "run programs"),
        (["--n-gpu-layers 20"], "placement decides how many"),
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


def quantized(folder: Path, model: Path, largest: Path) -> Path:
    """A folder with three files of one model, each named as a quantization of about its size."""
    folder.mkdir()
    shutil.copy(largest, folder / "tiny-Q8_0.gguf")
    for name, kind in (("tiny-Q6_K.gguf", "f16"), ("tiny-Q4_0.gguf", "q8_0")):
        gguf_of(model, folder / name, "--type", kind)
    return folder


def served_file(release: dict[str, Any]) -> str:
    """What the engine's command line names."""
    flags = release["plan"]["containers"][0]["command"]
    words: list[str] = [word for flag in flags for word in flag["tokens"]]
    return words[words.index("--model") + 1]


def adapters(folder: Path, model: Path) -> tuple[tuple[Path, Path], Path]:
    """The model with an adapter merged into it, that adapter, and another one."""
    saved, poet = tiny_adapter(folder, "poet")
    _, pirate = tiny_adapter(folder, "pirate", "--seed", 3, "--rank", 4)
    merged = folder / "merged"
    shutil.copytree(model, merged)
    weights, factors = (
        load_file(place) for place in (merged / "model.safetensors", saved / ADAPTER_WEIGHTS)
    )
    config = json.loads((saved / ADAPTER_CONFIG).read_text())
    for name, inner in factors.items():
        if "lora_A" in name:
            outer = factors[name.replace("lora_A", "lora_B")]
            target = name.removeprefix("base_model.model.").replace("lora_A.", "")
            weights[target] = weights[target] + config["lora_alpha"] / config["r"] * (outer @ inner)
    save_file(weights, merged / "model.safetensors")
    return (gguf_of(merged, folder / "merged.gguf"), poet), pirate


def named(name: str, file: Path) -> dict[str, str]:
    return {"name": name, "source": f"file://{file}"}


def test_a_draft_model_makes_drafts(workplace: Workplace, tiny_gguf: Path) -> None:
    """With the model itself as the draft, all that it proposes is taken."""
    drafts = {"method": "draft_model", "model": f"file://{tiny_gguf}", "tokens": 4}
    spec = workplace.spec(source=f"file://{tiny_gguf}", engine=AS_PROGRAM, speculative=drafts)
    release = workplace.json("deploy", spec)["release"]
    timings = answer_of(workplace, release)["timings"]
    assert timings["draft_n_accepted"] == timings["draft_n"] > 0
    workplace.run("retire", workplace.named("tiny"))


def completion(
    workplace: Workplace, release: dict[str, Any], name: str = "tiny", **more: Any
) -> str:
    text: str = answer_of(workplace, release, name, **more)["choices"][0]["text"]
    return text


def answer_of(
    workplace: Workplace, release: dict[str, Any], name: str = "tiny", **more: Any
) -> dict[str, Any]:
    answer = httpx.post(
        f"{release['workloads'][0]['endpoint']}/v1/completions",
        json={
            "model": workplace.named(name),
            "prompt": PROMPT,
            "max_tokens": 12,
            "temperature": 0,
            **more,
        },
        timeout=60,
    )
    found: dict[str, Any] = answer.json()
    assert found["choices"][0]["text"]
    return found
