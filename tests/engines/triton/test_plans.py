"""What Triton is started with, by shape; a real vLLM takes every model.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.registry import ENGINES
from moorage.images.catalogue import TRITON_RELEASES, vllm_of
from moorage.placement.engine_choice import other_engines
from moorage.readiness.protocol import Phase
from moorage.reports.document import Document
from moorage.reports.plan_report import plan_sections
from moorage.spec import EngineName, Mode, RuntimeName
from tests.builders import a_cpu_host, a_host, a_profile, a_spec
from tests.engines.triton.shapes import IMAGE, SHAPES, documents, plan_of, triton_plan

TRITON = ENGINES[EngineName.TRITON]


@pytest.mark.parametrize("name", SHAPES)
def test_a_plan_says_exactly_what_will_run(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"plans/triton_{name}.json", plan_of(name).model_dump_json(indent=2) + "\n")


def test_a_plan_shows_its_files_and_what_they_follow_from() -> None:
    plan = plan_of("adapters")

    shown = Document(title="plan", sections=tuple(plan_sections(plan))).markdown()

    assert all(file.content.strip() in shown for file in plan.containers[0].files)
    assert "--max-lora-rank" in shown
    assert f"127.0.0.1:{plan.containers[0].services['metrics']}" in shown


def test_arguments_keep_their_types() -> None:
    found = documents(plan_of("typed_arguments"))["model.json"]

    assert found["max_num_batched_tokens"] == 8000
    assert found["enable_prefix_caching"] is False
    assert found["hf_overrides"] == {"num_labels": 2}
    assert (found["block_size"], found["seed"]) == (32, 7)
    assert 0 < found["gpu_memory_utilization"] < 1


def test_adapters_stand_in_a_file_of_their_own() -> None:
    found = documents(plan_of("adapters"))

    assert found["multi_lora.json"] == {"poet": "/adapters/poet", "judge": "/adapters/judge"}
    assert found["model.json"]["enable_lora"] is True
    assert "lora_modules" not in found["model.json"]
    assert "multi_lora.json" not in documents(plan_of("one_accelerator"))


def test_several_accelerators_are_left_to_vllm() -> None:
    plan = plan_of("two_accelerators")

    assert "kind: KIND_MODEL" in plan.containers[0].files[0].content
    assert documents(plan)["model.json"]["tensor_parallel_size"] == 2


@pytest.mark.parametrize(
    ("triton", "placement", "why"),
    [
        ({"instance": "KIND_GPU"}, {"accelerators": 2}, "KIND_GPU is for one, not 2 accelerators"),
        ({"grpc": True, "health_check": True}, {}, "over gRPC by everybody who reaches it"),
        ({"openai": True, "instance": "KIND_GPU"}, {"accelerators": 2}, "KIND_GPU is for one"),
        ({"openai": True, "grpc": True}, {}, "triton.grpc: the OpenAI frontend has no such thing"),
        ({"openai": True, "health_check": True}, {}, "triton.health_check: the OpenAI frontend"),
    ],
)
def test_what_would_not_start_or_not_be_safe_is_refused(
    triton: dict[str, Any], placement: dict[str, Any], why: str
) -> None:
    with pytest.raises(Failure, match=why) as refused:
        triton_plan({"engine": {"triton": triton}, "placement": placement}, a_host(gpus=4))

    assert refused.value.cause == Cause.BAD_SPEC


def test_one_accelerator_is_not_pinned_where_the_container_sees_all_of_them() -> None:
    engine = {"triton": {"instance": "KIND_GPU"}, "container": {"privileged": True}}

    with pytest.raises(Failure, match="KIND_GPU takes the first accelerator of the host"):
        triton_plan({"engine": engine}, a_host(gpus=4))


@pytest.mark.parametrize(
    ("field", "value"), [("prompts", [{"prompt": "hi", "expect": "there"}]), ("acceptance", {})]
)
def test_what_is_sent_over_openais_protocol_is_refused(field: str, value: Any) -> None:
    with pytest.raises(Failure, match=rf"readiness\.{field}"):
        triton_plan({"readiness": {field: value}}, a_host(gpus=1))


def test_its_ports_are_claimed() -> None:
    plan = plan_of("grpc")
    (container,) = plan.containers

    assert container.port == 9000
    assert set(container.services) == {"grpc", "metrics"}
    assert len({container.port, *container.services.values()}) == 3


def test_the_openai_frontend_is_asked_as_gateways_ask_it() -> None:
    """Planned only: the server that the tests have comes without NVIDIA's program for it."""
    (container,) = plan_of("openai").containers
    probes = TRITON.probes(
        a_spec(engine={"name": "triton", "triton": {"openai": True}}), a_profile()
    )

    assert container.base_path == "/v1"
    assert TRITON.metrics_url(container) == f"{container.endpoint}/metrics"
    assert container.services == {}
    assert [probe.path for probe in probes[1:]] == [
        "/health/ready",
        "/v1/models",
        "/v1/chat/completions",
    ]
    assert TRITON.adapter_name("tiny", "judge") == "tiny:judge"


@pytest.mark.parametrize(
    ("openai", "release", "refused"),
    [(True, "26.07", ""), (True, "25.12", "no /v1/embeddings"), (False, "26.07", "embedding")],
)
def test_vectors_are_there_through_the_openai_frontend(
    openai: bool, release: str, refused: str
) -> None:
    wish = {"engine": {"triton": {"openai": openai}}}
    image = IMAGE.model_copy(update={"engine_version": release})
    ends = pytest.raises(Failure, match=refused) if refused else nullcontext()
    with ends:
        plan = triton_plan(wish, a_host(gpus=1), image=image, mode=Mode.EMBEDDING)
        assert documents(plan)["model.json"]["runner"] == "pooling"


def test_readiness_is_live_ready_and_a_generated_token() -> None:
    probes = TRITON.probes(a_spec(), a_profile())

    assert [probe.phase for probe in probes] == [
        Phase.LISTENING,
        Phase.HEALTHY,
        Phase.LISTED,
        Phase.ANSWERED,
    ]
    assert [probe.path for probe in probes[1:3]] == ["/v2/health/live", "/v2/models/tiny/ready"]
    assert probes[-1].body
    assert json.loads(probes[-1].body["sampling_parameters"])["max_tokens"] == 1


def test_a_release_is_checked_by_the_arguments_of_its_vllm() -> None:
    assert TRITON.argument_version("26.07") == "0.24.0" == vllm_of("26.07")
    assert TRITON.argument_version("99.01") == ""
    assert TRITON.default_version in TRITON_RELEASES


def test_it_is_only_taken_where_it_is_named() -> None:
    spec, profile = a_spec(), a_profile()

    assert TRITON not in other_engines(spec, profile, ENGINES[EngineName.VLLM], ENGINES)


def test_on_cpu_it_needs_an_image_of_ones_own() -> None:
    host = a_cpu_host(runtimes=(RuntimeName.DOCKER,))
    wish = {"placement": {"accelerators": 0}, "engine": {"image": "own/triton:1"}}
    plan = triton_plan(wish, host)

    assert plan.containers[0].isolation.ulimits == {}
    assert documents(plan)["model.json"]["model"] == "/models/tiny"
