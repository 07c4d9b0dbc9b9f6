from __future__ import annotations

from typing import Any

import pytest

from moorage.common.values import Origin
from moorage.engines.calibration import calibration_key, flags_of_fields, key_of_container
from moorage.engines.launch import Flag, LaunchPlan
from moorage.engines.plan import plan_launch
from moorage.memory.calibration import CalibrationKey
from moorage.memory.spec_options import memory_options
from moorage.placement.placed import Placed
from moorage.spec import EngineName, Mode
from moorage.spec.arguments import user_tokens
from tests.builders import (
    a_container,
    a_fleet,
    a_host,
    a_key,
    a_model,
    a_placement,
    a_profile,
    a_spec,
    an_accelerator,
    an_image,
    with_companions,
)

DEVICE = "NVIDIA H100 80GB HBM3"


def key(*arguments: str, **profile: Any) -> CalibrationKey:
    return calibration_key(
        a_profile(**profile), EngineName.VLLM, "0.32.0", "cuda", DEVICE, arguments
    )


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], {}),
        (["--max-model-len", "8192"], {}),
        (["--max-num-seqs", "64"], {"max_num_seqs": 64}),
        (["--max-num-seqs=64"], {"max_num_seqs": 64}),
        (["--max_num_seqs", "64"], {"max_num_seqs": 64}),
        (["--max-num-seqs", "8", "--max-num-seqs", "64"], {"max_num_seqs": 64}),
        (["--max-num-seqs"], {}),
        (["--max-num-seqs", "many"], {}),
        (["--max-num-batched-tokens", "8k"], {"max_num_batched_tokens": 8000}),
        (["--max-num-batched-tokens", "8K"], {"max_num_batched_tokens": 8192}),
        (["--tensor-parallel-size", "2"], {"tensor_parallel_size": 2}),
        (["-tp", "2", "-pp=4"], {"tensor_parallel_size": 2, "pipeline_parallel_size": 4}),
        (["--enforce-eager"], {"eager": True}),
        (["--port", "8000", "--gpu-memory-utilization", "0.9"], {}),
        (
            ["--max-lora-rank=64", "--enable_lora", "--port", "1"],
            {"options": "--enable-lora --max-lora-rank 64"},
        ),
        (["--cudagraph-capture-sizes", "1", "2"], {"options": "--cudagraph-capture-sizes 1 2"}),
        (["-sc.method=ngram"], {"options": "-sc.method ngram"}),
        (["--tp", "2"], {"tensor_parallel_size": 2}),
        (["-O1", "-cc.mode=none"], {"options": "-O1 -cc.mode none"}),
    ],
)
def test_the_command_line_tells_the_settings(arguments: list[str], part: dict[str, Any]) -> None:
    assert key("vllm", "serve", "/models/tiny", *arguments) == a_key(**part)


@pytest.mark.parametrize(
    "change",
    [
        {"architectures": ("MistralForCausalLM",)},
        {"layers": 80},
        {"hidden_size": 8192},
        {"vocab_size": 32000},
        {"quantization": "awq"},
        {"dtype": "float32"},
        {"mode": Mode.EMBEDDING},
    ],
)
def test_another_model_has_another_key(change: dict[str, Any]) -> None:
    assert key(**change) != key()


def test_a_model_without_a_class_goes_by_its_type() -> None:
    assert key(architectures=()).architecture == "llama"


@pytest.mark.parametrize(
    ("devices", "name"), [(("GPU-1",), "B"), (("GPU-0",), "A"), ((), ""), (("7",), "")]
)
def test_a_container_is_known_by_the_accelerators_it_was_given(
    devices: tuple[str, ...], name: str
) -> None:
    found = key_of("vllm", "serve", "--max-num-seqs", "8", devices=devices)
    assert found == a_key(accelerator=name, max_num_seqs=8)


def test_a_script_shares_nothing_with_what_is_started_otherwise() -> None:
    found = key_of("sh", "-c", "vllm serve --max-num-seqs 8")
    assert found == a_key(accelerator="A", options="sh -c vllm serve --max-num-seqs 8")


LORA = [{"name": "poet", "source": "file:///adapters/poet", "rank": 12}]
NGRAM = {"method": "ngram", "tokens": 3, "ngram_max": 4}
DRAFT = {"method": "draft_model", "tokens": 3, "model": "file:///drafts/small"}


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"lora": LORA},
        {"lora": LORA, "lora_updates": {"max": 2, "rank": 64}},
        {"lora": LORA, "engine": {"args": ["--max-loras 8"]}},
        {"lora": LORA, "engine": {"args": ["--enable-lora", "--lora-modules poet=/x"]}},
        {"speculative": NGRAM},
        {"speculative": DRAFT},
        {"speculative": NGRAM, "engine": {"args": ['-sc {"method": "mtp"}']}},
    ],
    ids=str,
)
def test_what_fields_of_the_spec_make_is_known_before_the_launch(wish: dict[str, Any]) -> None:
    spec = a_spec(**wish)
    model, profile = with_companions(a_model(), spec), a_profile()
    host = a_host(accelerators=(an_accelerator(name=DEVICE),))
    placement, fleet = a_placement(spec, host), a_fleet(host)
    plan = plan_launch(Placed(spec, model, profile, placement, fleet, "tiny.v1"), an_image(), "l")
    given = user_tokens(spec.engine.args)
    options = memory_options(spec, companions=model.companions)
    fields = flags_of_fields(options.lora, spec.speculative, given)
    started = key_of_container(profile, plan, plan.containers[0], host)
    assert started.options == key(*fields, *given).options
    assert bool(started.options) == bool(wish)


def key_of(*command: str, devices: tuple[str, ...] = ("GPU-0",)) -> CalibrationKey:
    host = a_host(accelerators=(an_accelerator(name="A"), an_accelerator(1, name="B")))
    words = Flag(tokens=command, origin=Origin.USER, reason="")
    container = a_container(devices=devices, accelerator_type="cuda", command=(words,))
    plan = LaunchPlan(
        release="tiny.v1",
        engine=EngineName.VLLM,
        engine_version="0.32.0",
        containers=(container,),
    )
    return key_of_container(a_profile(), plan, container, host)
