"""What Triton is started with, by shape; a real vLLM takes every model.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from moorage.adapters.engines.schemas import schema_for_plan
from moorage.common.failures import Cause, Failure
from moorage.common.units import MIB
from moorage.engines.registry import ENGINES
from moorage.images.catalogue import TRITON_RELEASES, vllm_of
from moorage.memory.estimates import CONTEXT
from moorage.placement.demand import Subject
from moorage.placement.engine_choice import other_engines
from moorage.placement.propose import propose
from moorage.readiness.diagnosis import diagnose
from moorage.readiness.protocol import Phase
from moorage.reports.document import Document
from moorage.reports.plan_report import plan_sections
from moorage.spec import EngineName, Mode, RuntimeName
from tests.builders import a_cpu_host, a_fleet, a_host, a_model, a_profile, a_spec
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


def test_a_startup_plan_of_vllm_is_for_one_claim() -> None:
    """vLLM's own key of a plan omits the share of memory."""

    def plans(wish: dict[str, Any]) -> list[str]:
        mounts = triton_plan(wish, a_host(gpus=2), "0.27.1", caches="/caches").containers[0].mounts
        return [mount.source for mount in mounts if mount.target.endswith("/startup_plan")]

    wishes: tuple[dict[str, Any], ...] = (
        {},
        {"concurrency": 64},
        {"placement": {"accelerators": 2}},
    )
    folders = [folder for wish in wishes for folder in plans(wish)]

    assert len(folders) == len(set(folders)) == 3
    assert plans({}) == folders[:1]


@pytest.mark.parametrize(
    ("openai", "keep_alive", "warned"),
    [(False, "5m", True), (False, "never", False), (True, "5m", False)],
)
def test_a_plan_warns_that_no_gateway_puts_its_own_protocol_to_sleep(
    openai: bool, keep_alive: str, warned: bool
) -> None:
    wish = {"keep_alive": keep_alive, "engine": {"triton": {"openai": openai}}}
    warnings = triton_plan(wish, a_host(gpus=1)).warnings

    assert any(one.startswith("keep_alive: without effect") for one in warnings) is warned


@pytest.mark.parametrize(
    ("triton", "size"), [({}, CONTEXT), ({"openai": True}, CONTEXT + 64 * MIB)], ids=str
)
def test_what_the_server_takes_is_claimed_outside_of_the_engines_share(
    triton: dict[str, bool], size: int
) -> None:
    engines = ({"name": "triton", "triton": triton}, {"name": "vllm", "version": "0.24.0"})
    seats = [
        propose(
            Subject(a_spec(engine=engine), a_profile()), a_fleet(a_host(gpus=1)), ENGINES
        ).seats[0]
        for engine in engines
    ]
    (served, alone) = (sum(seat.accelerator_bytes) for seat in seats)
    assert served == alone + size
    assert seats[0].utilization == seats[1].utilization


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


@pytest.mark.parametrize(
    ("model", "args", "openai", "why"),
    [
        ({"has_own_tokenizer": True}, [], True, "its tokenizer is such code"),
        ({"has_own_tokenizer": True}, ["--tokenizer /tok"], True, ""),
        ({"has_own_tokenizer": True}, [], False, ""),
        ({"files": [{"name": "tekken.json", "size": 1}]}, [], True, "does not read tekken.json"),
        ({"files": [{"name": "tekken.json", "size": 1}]}, [], False, ""),
    ],
)
def test_a_tokenizer_that_the_openai_frontend_cannot_read_is_refused(
    model: dict[str, Any], args: list[str], openai: bool, why: str
) -> None:
    wish = {
        "engine": {"triton": {"openai": openai}, "args": args},
        "trust_remote_code": True,
    }
    ends = pytest.raises(Failure, match=why) if why else nullcontext()
    with ends as refused:
        triton_plan(wish, a_host(gpus=1), model=a_model(**model))
    assert not why or (refused and "`--tokenizer`" in (refused.value.suggestion or ""))


@pytest.mark.parametrize(("args", "path"), [([], "/models/tiny"), (["--tokenizer=/tok"], "/tok")])
def test_the_openai_frontend_has_the_tokenizer_of_the_engine(args: list[str], path: str) -> None:
    wish = {"engine": {"triton": {"openai": True}, "args": args}}
    plan = triton_plan(wish, a_host(gpus=1))
    tokens = [flag.tokens for flag in plan.containers[0].command]
    assert ("--tokenizer", path) in tokens
    assert documents(plan)["model.json"].get("tokenizer", "/models/tiny") == path


def test_a_log_advises_nothing_that_does_not_help_the_frontend() -> None:
    log = "ValueError: The repository requires you to execute the tokenizer file in it"
    found = diagnose(log, TRITON.log_causes, Cause.ENGINE_EXITED, "exit code 1")
    assert found.cause == Cause.CONFIG_UNREADABLE
    assert "leave `engine.triton.openai` out" in (found.suggestion or "")


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


@pytest.mark.parametrize(
    ("version", "args", "found"),
    [
        ("0.9.2", ["--swap-space 4"], {"swap_space": 4}),
        ("0.9.2", ["--calculate-kv-scales"], {"calculate_kv_scales": True}),
        ("0.5.5", ["--num-scheduler-steps 8"], {"num_scheduler_steps": 8}),
        ("", ["--swap-space 4"], {"swap_space": 4}),
    ],
)
def test_a_vllm_without_a_schema_gets_what_any_version_knows(
    version: str, args: list[str], found: dict[str, Any]
) -> None:
    plan = triton_plan({"engine": {"args": args}}, a_host(gpus=1), version)
    assert documents(plan)["model.json"].items() >= found.items()


@pytest.mark.parametrize(("version", "mode"), [("0.9.2", "task"), ("0.24.0", "runner")])
def test_a_mode_is_written_as_the_version_knows_it(version: str, mode: str) -> None:
    wish = {"engine": {"triton": {"openai": True}}}
    plan = triton_plan(wish, a_host(gpus=1), version, mode=Mode.EMBEDDING)
    assert {"task", "runner"} & documents(plan)["model.json"].keys() == {mode}


@pytest.mark.parametrize(
    ("args", "version", "why"),
    [
        (["--disable-frontend-multiprocessing"], "0.17.1", "option of vLLM's own HTTP server"),
        (["--disable_frontend_multiprocessing"], "0.9.2", "option of vLLM's own HTTP server"),
        (["--use-gpu-for-pooling-score"], "0.17.1", "option of vLLM's own HTTP server"),
        (["--log-config-file /a.json"], "0.24.0", "option of vLLM's own HTTP server"),
        (["--log-config-file /a.json"], "0.32.0", ""),
        (["--tokens-only"], "0.27.1", "option of vLLM's own HTTP server"),
        (["--tokens-only"], "0.33.0", ""),
        (["--enable-lora"], "0.24.0", "which only `lora` gives it"),
        (["--no-enable-lora"], "0.24.0", ""),
    ],
)
def test_arguments_with_which_the_backend_cannot_load_are_refused(
    args: list[str], version: str, why: str
) -> None:
    ends = pytest.raises(Failure, match=why) if why else nullcontext()
    with ends:
        triton_plan({"engine": {"args": args}}, a_host(gpus=1), version)


def test_a_release_that_cannot_draft_with_a_model_names_one_that_can() -> None:
    draft = {"method": "draft_model", "tokens": 3, "model": "file:///drafts/small"}
    with pytest.raises(Failure, match=r"vLLM 0\.13\.0 does not draft") as refused:
        triton_plan({"speculative": draft}, a_host(gpus=1), "0.13.0")
    assert "26.02 or newer" in refused.value.suggestion


def test_a_switch_for_adapters_is_taken_next_to_adapters() -> None:
    wish = {"engine": {"args": ["--enable-lora"]}, "lora": SHAPES["adapters"]["lora"]}
    assert "multi_lora.json" in documents(triton_plan(wish, a_host(gpus=1)))


def test_an_argument_that_no_version_knows_is_refused_with_the_command_that_finds_out() -> None:
    with pytest.raises(Failure, match="no version of vLLM") as refused:
        triton_plan({"engine": {"args": ["--acme"]}}, a_host(gpus=1), "0.9.2")
    assert "`moorage schema vllm --image IMAGE`" in (refused.value.suggestion or "")


@pytest.mark.parametrize(
    ("release", "version", "assumed"),
    [("26.07", "0.24.0", False), ("25.08", "0.9.2", True), ("99.01", "", True)],
)
def test_plans_are_written_for_the_vllm_of_the_release(
    release: str, version: str, assumed: bool, tmp_path: Path
) -> None:
    image = IMAGE.model_copy(update={"engine_version": release, "digest": "sha256:1"})
    schema = schema_for_plan(TRITON, a_host(), image, tmp_path)
    assert schema
    assert (schema.version, schema.assumed) == (version, assumed)


def test_it_is_only_taken_where_it_is_named() -> None:
    spec, profile = a_spec(), a_profile()

    assert TRITON not in other_engines(spec, profile, ENGINES[EngineName.VLLM], ENGINES)


def test_on_cpu_it_needs_an_image_of_ones_own() -> None:
    host = a_cpu_host(runtimes=(RuntimeName.DOCKER,))
    wish = {"placement": {"accelerators": 0}, "engine": {"image": "own/triton:1"}}
    plan = triton_plan(wish, host)

    assert plan.containers[0].isolation.ulimits == {}
    assert documents(plan)["model.json"]["model"] == "/models/tiny"
