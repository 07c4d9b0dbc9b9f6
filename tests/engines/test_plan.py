from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.chain import Placed
from moorage.engines.plan import plan_launch
from moorage.failures import Cause, Failure
from moorage.fleet_engines import EngineVersion, EngineVersions
from moorage.images.image import Image
from moorage.launch import ContainerSpec, Flag, LaunchPlan
from moorage.models.memory.estimates import CONTEXT
from moorage.models.source import ModelFile, ResolvedModel
from moorage.placement.placement import Role
from moorage.placement.propose import Subject, propose
from moorage.placement.snapshot import HostSnapshot, Program
from moorage.spec import EngineName, IpcMode, Mode, NetworkMode
from moorage.units import GIB
from moorage.values import Origin
from tests.builders import (
    LEDGER,
    ON_CPU,
    a_container,
    a_cpu_host,
    a_fleet,
    a_host,
    a_model,
    a_profile,
    a_spec,
    an_accelerator,
    an_image,
    with_companions,
)

Wish = dict[str, Any]

VLLM_INSTALLED = Program(engine=EngineName.VLLM, path="/opt/vllm/bin/vllm", version="0.31.0")
GPU, CPU = a_host(gpus=4), a_cpu_host()
LORA = [
    {"name": "poet", "source": "file:///adapters/poet", "rank": 24},
    {"name": "judge", "source": "file:///adapters/judge"},
]
ROCM = a_host(accelerators=tuple(an_accelerator(type="rocm", index=index) for index in range(2)))
ROCM_NODES = a_host(
    accelerators=tuple(
        an_accelerator(type="rocm", index=index, node=f"/dev/dri/renderD{128 + index}")
        for index in range(2)
    )
)
NPUS = a_host(
    architecture="arm64",
    accelerators=tuple(
        an_accelerator(type="cann", index=index, gib=64, uuid="", family="Ascend910B3")
        for index in range(4)
    ),
)
PPUS = a_host(accelerators=tuple(an_accelerator(type="hggc", index=index) for index in range(2)))
GAUDIS = a_host(accelerators=tuple(an_accelerator(type="hpu", index=index) for index in range(2)))
KEPT = "/home/moorage/cache"
OWN_RUN = ["acme", "{{model_path}}", "--ids={{accelerator_ids}}", "--n={{accelerator_count}}"]
OWN_START = "{{model_path}} --quick --max-model-len 4096"
OLD_DRIVER = a_host(accelerators=(an_accelerator(runtime_version="12.4"),))
CUSTOM = {
    "name": "custom",
    "image": "acme/server:1",
    "command": ["/serve", "--model={{model_path}}", "--port={{port}}", "--gpus={{gpu_ids}}"],
}
ACME = EngineVersions(
    versions={
        "1.9": EngineVersion(image="acme/server:9", entrypoint="/old"),
        "1.10": EngineVersion(
            image="acme/server:10",
            entrypoint="/acme serve",
            run_command="--model {{model_path}} --port={{port}} --name={{model_name}}",
        ),
    }
)
OWN = ["/serve", "{{model_path}}", "--name={{model_name}}", "--at={{host}}:{{port}}"]


def planned(
    wish: Wish,
    host: HostSnapshot,
    image: Image | None = None,
    model: ResolvedModel | None = None,
    caches: str = "",
    **profile: Any,
) -> LaunchPlan:
    spec, snapshot = a_spec(**wish), a_fleet(host)
    model = model or with_companions(a_model(), spec)
    placement = propose(Subject(spec, a_profile(**profile)), snapshot)
    known, release = a_profile(**profile), f"{spec.name}.v1"
    placed = Placed(spec, model, known, placement, snapshot, release)
    return plan_launch(placed, image, LEDGER, caches)


def over_hosts(
    wish: Wish, *hosts: HostSnapshot, image: Image | None = None, **profile: Any
) -> LaunchPlan:
    """The plan over several hosts, each with an address and an interface of its own."""
    spec, known = a_spec(**wish), a_profile(**profile)
    named = (
        host.model_copy(update={"bind": f"10.0.0.{at}", "interface": f"eth{at}"})
        for at, host in enumerate(hosts, 1)
    )
    snapshot, model = a_fleet(*named), with_companions(a_model(), spec)
    placement = propose(Subject(spec, known), snapshot)
    placed = Placed(spec, model, known, placement, snapshot, "tiny.v1")
    return plan_launch(placed, image or an_image(), LEDGER)


def configured(default_version: str | None = None, **version: str) -> HostSnapshot:
    """A host of a fleet that says something about vLLM 0.31.0."""
    own = EngineVersions(
        default_version=default_version,
        versions={"0.31.0": EngineVersion.model_validate(version)},
    )
    return a_host(engines={"vllm": own})


def only(plan: LaunchPlan) -> ContainerSpec:
    (container,) = plan.containers
    return container


def flag(plan: LaunchPlan, name: str) -> Flag:
    (found,) = (flag for flag in only(plan).command if flag.tokens[0] == name)
    return found


TWO_GPU_HOSTS = (a_host("gpu-1", 4), a_host("gpu-2", 4))
UNEVEN_HOSTS = (a_host("gpu-1", 4), a_host("gpu-2", 2))
TWO_CPU_HOSTS = (a_host("cpu-1", 0), a_host("cpu-2", 0))
CPU_IMAGE = {"reference": "vllm/vllm-openai-cpu:v0.32.0"}
LARGE: dict[str, Any] = {"weight_bytes": 340 * GIB, "context": 32768}

CASES: dict[str, Callable[[], LaunchPlan]] = {
    "hosts_native_tp8": lambda: over_hosts(
        {"engine": {"args": ["-tp 8"]}, "placement": {"across_hosts": True}}, *TWO_GPU_HOSTS
    ),
    "hosts_native_pipeline": lambda: over_hosts(
        {"placement": {"accelerators": 8, "hosts": 2}}, *TWO_GPU_HOSTS
    ),
    "hosts_native_data": lambda: over_hosts(
        {"engine": {"args": ["-tp 4 -dp 2"]}, "placement": {"hosts": 2}}, *TWO_GPU_HOSTS
    ),
    "hosts_native_cpu": lambda: over_hosts(
        {"engine": {"name": "vllm"}, "placement": {**ON_CPU, "hosts": 2, "ram": "24GiB"}},
        *TWO_CPU_HOSTS,
        image=an_image(**CPU_IMAGE),
    ),
    "hosts_ray": lambda: over_hosts(
        {
            "engine": {"distributed": "ray", "packages": ["ray[cgraph]"]},
            "secrets": {"VLLM_API_KEY": "key"},
            "placement": {"hosts": 2, "accelerators": 8},
        },
        *TWO_GPU_HOSTS,
    ),
    "hosts_ray_uneven": lambda: over_hosts(
        {"engine": {"distributed": "ray"}, "placement": {"across_hosts": True}},
        *UNEVEN_HOSTS,
        **LARGE,
    ),
    "hosts_ray_cpu": lambda: over_hosts(
        {
            "engine": {"name": "vllm", "distributed": "ray"},
            "placement": {**ON_CPU, "hosts": 2, "ram": "24GiB"},
        },
        *TWO_CPU_HOSTS,
        image=an_image(**CPU_IMAGE),
    ),
    "vllm_single": lambda: planned({}, GPU, an_image()),
    "vllm_tp2": lambda: planned({"placement": {"accelerators": 2}}, GPU, an_image()),
    "vllm_two_replicas": lambda: planned({"replicas": 2}, GPU, an_image()),
    "vllm_cpu_docker": lambda: planned(
        {"engine": {"name": "vllm", "shm": "512MiB"}, "placement": {**ON_CPU, "ram": "24GiB"}},
        GPU,
        an_image(reference="vllm/vllm-openai-cpu:v0.32.0", digest="", identity="sha256:abcd"),
    ),
    "vllm_process": lambda: planned(
        {"engine": {"name": "vllm", "runtime": "process"}, "placement": ON_CPU, "port": 8000},
        a_host(programs=(VLLM_INSTALLED,), bind="0.0.0.0"),
    ),
    "vllm_process_gpu": lambda: planned(
        {"engine": {"runtime": "process"}, "placement": {"accelerators": ["gpu-1:cuda:2"]}},
        a_host(gpus=4, programs=(VLLM_INSTALLED,)),
    ),
    "vllm_user_arguments": lambda: planned(
        {"engine": {"args": ["--max_model_len=2048", "--seed", "7"]}},
        GPU,
        an_image(),
    ),
    "vllm_secrets": lambda: planned(
        {
            "secrets": {"HF_TOKEN": "hub-token", "VLLM_API_KEY": "key"},
            "engine": {"env": {"OMP_NUM_THREADS": "4", "EXTRA": "1"}},
        },
        GPU,
        an_image(),
    ),
    "vllm_embedding": lambda: planned({}, GPU, an_image(), mode=Mode.EMBEDDING),
    "vllm_trusted_code": lambda: planned({"trust_remote_code": True}, GPU, an_image()),
    "vllm_ngram": lambda: planned(
        {"speculative": {"method": "ngram", "tokens": 5, "ngram_min": 2, "ngram_max": 4}},
        GPU,
        an_image(),
    ),
    "vllm_eagle3": lambda: planned(
        {"speculative": {"method": "eagle3", "tokens": 3, "model": "file:///drafts/eagle"}},
        GPU,
        an_image(),
    ),
    "vllm_draft_of_the_hub": lambda: planned(
        {
            "speculative": {
                "method": "draft_model",
                "tokens": 4,
                "model": "hf://org/small",
                "revision": "v2",
            }
        },
        GPU,
        an_image(),
    ),
    "vllm_mtp": lambda: planned({"speculative": {"method": "mtp"}}, GPU, an_image()),
    "vllm_omni": lambda: planned(
        {"mode": "image-generation", "engine": {"image": "acme/vllm-omni:1", "version": "0.32.0"}},
        GPU,
        an_image(reference="acme/vllm-omni:1", digest=""),
        mode=Mode.IMAGE_GENERATION,
    ),
    "vllm_lora": lambda: planned({"lora": LORA}, GPU, an_image()),
    "vllm_lora_of_the_hub": lambda: planned(
        {"lora": [{"name": "poet", "source": "hf://org/poet", "revision": "v2"}]}, GPU, an_image()
    ),
    "vllm_lora_updates": lambda: planned({"lora_updates": {}}, GPU, an_image()),
    "vllm_lora_and_updates": lambda: planned(
        {"lora": LORA, "lora_updates": {"max": 2, "rank": 100}}, GPU, an_image()
    ),
    "vllm_lora_updates_on_cpu": lambda: planned(
        {"lora_updates": {"rank": 8}, "engine": {"name": "vllm"}, "placement": ON_CPU},
        GPU,
        an_image(),
    ),
    "vllm_lora_updates_process": lambda: planned(
        {
            "lora_updates": {"max": 1},
            "engine": {"runtime": "process", "name": "vllm"},
            "placement": ON_CPU,
        },
        a_host(programs=(VLLM_INSTALLED,)),
    ),
    "vllm_lora_process": lambda: planned(
        {"lora": LORA, "engine": {"runtime": "process", "name": "vllm"}, "placement": ON_CPU},
        a_host(programs=(VLLM_INSTALLED,)),
    ),
    "vllm_lora_of_the_user": lambda: planned(
        {"lora": LORA, "engine": {"args": ["--lora-modules mine=/x", "--enable-lora"]}},
        GPU,
        an_image(),
    ),
    "vllm_cache_in_ram": lambda: planned(
        {"extended_kv_cache": {"ram": "64GiB", "chunk": 256}}, GPU, an_image()
    ),
    "vllm_cache_by_ratio": lambda: planned(
        {"extended_kv_cache": {"ratio": 0.5}, "placement": {"accelerators": 2}}, GPU, an_image()
    ),
    "vllm_cache_in_ram_on_cpu": lambda: planned(
        {"extended_kv_cache": {}, "engine": {"name": "vllm"}, "placement": ON_CPU},
        GPU,
        an_image(),
    ),
    "vllm_old_version": lambda: planned({}, GPU, an_image(engine_version="0.8.5")),
    "vllm_candidate": lambda: planned({}, GPU, an_image(engine_version="0.16.0rc1")),
    "vllm_unknown_version": lambda: planned({}, GPU, an_image(engine_version="")),
    "vllm_user_parallelism": lambda: planned(
        {"engine": {"args": ["-tp 2"]}, "placement": {"accelerators": 2}}, GPU, an_image()
    ),
    "vllm_user_writings": lambda: planned(
        {
            "engine": {
                "args": [
                    "--enable-auto-tool-choice --tool-call-parser = hermes",
                    '--limit-mm-per-prompt {"image": 2}',
                    "--no-enable-prompt-tokens-details",
                    "--disable_access_log_for_endpoints=/health",
                ],
                "env": {"RUNAI_STREAMER_LOG_LEVEL": "DEBUG"},
            }
        },
        GPU,
        an_image(),
    ),
    "vllm_rocm": lambda: planned({}, ROCM, an_image(reference="vllm/vllm-openai-rocm:v0.32.0")),
    "vllm_rocm_cache_in_ram": lambda: planned(
        {"extended_kv_cache": {"ram": "16GiB"}, "placement": {"accelerators": 2}},
        ROCM,
        an_image(reference="vllm/vllm-openai-rocm:v0.32.0"),
    ),
    "vllm_rocm_process": lambda: planned(
        {"engine": {"runtime": "process"}, "placement": {"accelerators": ["gpu-1:rocm:1"]}},
        a_host(accelerators=ROCM.accelerators, programs=(VLLM_INSTALLED,)),
    ),
    "vllm_tp4": lambda: planned({"placement": {"accelerators": 4}}, GPU, an_image()),
    "vllm_reranking": lambda: planned({}, GPU, an_image(), mode=Mode.RERANKING),
    "vllm_embedding_on_cpu": lambda: planned(
        {"engine": {"name": "vllm"}, "placement": ON_CPU}, GPU, an_image(), mode=Mode.EMBEDDING
    ),
    "vllm_classification": lambda: planned({}, GPU, an_image(), mode=Mode.CLASSIFICATION),
    "vllm_stopping": lambda: planned(
        {"stopping": {"drain_seconds": 120, "grace_seconds": 90}}, GPU, an_image()
    ),
    "vllm_0_17": lambda: planned({}, GPU, an_image(engine_version="0.17.1")),
    "vllm_exposed": lambda: planned({}, a_host(bind="10.0.0.7"), an_image()),
    "vllm_fixed_port": lambda: planned({"port": 8000}, GPU, an_image()),
    "vllm_many_requests": lambda: planned({"concurrency": 16, "context": 4096}, GPU, an_image()),
    "vllm_whole": lambda: planned({"placement": {"policy": "whole"}}, GPU, an_image()),
    "vllm_0_15": lambda: planned({}, GPU, an_image(engine_version="0.15.9")),
    "vllm_0_16_tp2": lambda: planned(
        {"placement": {"accelerators": 2}}, GPU, an_image(engine_version="0.16.0")
    ),
    "vllm_ngram_of_the_user": lambda: planned(
        {
            "speculative": {"method": "ngram", "tokens": 5},
            "engine": {"args": ["--speculative-config.method mtp"]},
        },
        GPU,
        an_image(),
    ),
    "vllm_all_at_once": lambda: planned(
        {
            "lora": LORA,
            "speculative": {"method": "mtp", "tokens": 1},
            "extended_kv_cache": {"ratio": 1.5, "chunk": 128},
            "placement": {"accelerators": 2},
            "engine": {"args": ["--seed 7"], "env": {"LMCACHE_CHUNK_SIZE": "512"}},
        },
        GPU,
        an_image(),
    ),
    "vllm_baseline_policy": lambda: planned(
        {"placement": {"policy": "baseline"}}, GPU, an_image(), context=131_072
    ),
    "vllm_length_fitted": lambda: planned({}, GPU, an_image(), context=10_000_000),
    "vllm_own_version": lambda: planned(
        {"engine": {"args": ["--seed 7"]}},
        configured(default_version="0.31.0", image="acme/vllm:7", run_command=OWN_START),
        an_image(reference="acme/vllm:7", digest="", engine_version="0.31.0"),
    ),
    "vllm_own_entrypoint_of_a_version": lambda: planned(
        {"engine": {"version": "0.31.0"}},
        configured(image="acme/vllm:7", entrypoint="python3 -m acme.serve --fast"),
        an_image(reference="acme/vllm:7", digest="", engine_version="0.31.0"),
    ),
    "vllm_own_entrypoint": lambda: planned(
        {"engine": {"entrypoint": ["python3", "-m", "acme", "--for={{model_name}}"]}},
        GPU,
        an_image(),
    ),
    "vllm_packages": lambda: planned(
        {
            "engine": {
                "packages": ["acme-plugin==1.2", "other[fast] >=1, <2"],
                "env": {"PIP_INDEX_URL": "http://index.lan/simple"},
            },
            "secrets": {"PIP_EXTRA_INDEX_URL": "private-index"},
        },
        GPU,
        an_image(),
    ),
    "vllm_minor_version": lambda: planned({}, GPU, an_image(newer_runtime=True)),
    "vllm_minor_version_by_tag": lambda: planned(
        {"engine": {"image": "gpustack/runner:cuda12.9-vllm0.18.0", "packages": ["acme"]}},
        OLD_DRIVER,
        an_image(reference="gpustack/runner:cuda12.9-vllm0.18.0", engine_version="0.18.0"),
    ),
    "vllm_minor_version_kept": lambda: planned(
        {"engine": {"keep_cuda_compat": True}}, GPU, an_image(newer_runtime=True)
    ),
    "custom_docker": lambda: planned(
        {"engine": CUSTOM, "placement": {**ON_CPU, "ram": "6GiB"}},
        GPU,
        an_image(reference="acme/server:1", digest="", engine_version=""),
    ),
    "custom_gpus": lambda: planned(
        {
            "engine": {**CUSTOM, "packages": ["acme-extra"]},
            "memory": {"claim": "20GiB"},
            "placement": {"accelerators": 2},
        },
        ROCM,
        an_image(reference="acme/server:1", digest="", engine_version=""),
    ),
    "custom_process": lambda: planned(
        {"engine": {"name": "custom", "runtime": "process", "command": CUSTOM["command"]}},
        a_host(gpus=0),
    ),
    "custom_by_name": lambda: planned(
        {"engine": {"name": "custom", "custom": "acme", "args": ["--threads 4"]}},
        a_host(
            gpus=1,
            engines={"acme": ACME},
        ),
        an_image(reference="acme/server:10", digest="", engine_version="1.10"),
    ),
    "transformers_process_cpu": lambda: planned({"trust_remote_code": True}, CPU),
    "transformers_process_gpu": lambda: planned(
        {"engine": {"name": "transformers"}},
        a_host(programs=CPU.programs, runtimes=("process",)),
    ),
    "transformers_docker": lambda: planned(
        {"engine": {"name": "transformers", "image": "own/transformers:1"}, "placement": ON_CPU},
        a_cpu_host(runtimes=("docker", "process")),
        an_image(reference="own/transformers:1", digest="", engine_version=""),
    ),
    "rocm_render_nodes": lambda: planned(
        {"placement": {"accelerators": 2}},
        ROCM_NODES,
        an_image(reference="vllm/vllm-openai-rocm:v0.32.0"),
    ),
    "cann_one_of_four": lambda: planned(
        {"engine": {"image": "own/ascend:1"}, "placement": {"accelerators": ["gpu-1:cann:2"]}},
        NPUS,
        an_image(reference="own/ascend:1", engine_version="0.18.0"),
    ),
    "cann_privileged": lambda: planned(
        {
            "engine": {"image": "own/ascend:1", "container": {"privileged": True}},
            "placement": {"accelerators": 2},
        },
        NPUS,
        an_image(reference="own/ascend:1", engine_version="0.18.0"),
    ),
    "hggc": lambda: planned(
        {"engine": {"image": "own/ppu:1"}, "placement": {"accelerators": ["gpu-1:hggc:1"]}},
        PPUS,
        an_image(reference="own/ppu:1", engine_version=""),
    ),
    "hpu": lambda: planned(
        {"engine": {"image": "own/gaudi:1"}, "placement": {"accelerators": ["gpu-1:hpu:1"]}},
        GAUDIS,
        an_image(reference="own/gaudi:1", engine_version=""),
    ),
    "host_network": lambda: planned(
        {"engine": {"container": {"network": "host"}}},
        a_host(gpus=1, bind="10.0.0.7"),
        an_image(),
    ),
    "privileged": lambda: planned({"engine": {"container": {"privileged": True}}}, GPU, an_image()),
    "user_and_limits": lambda: planned(
        {
            "engine": {
                "container": {
                    "user": 1000,
                    "group": 1001,
                    "groups": ["render", "109"],
                    "ulimits": {"memlock": -1, "nofile": 65536, "stack": 67108864},
                    "ipc": "host",
                    "capabilities": ["SYS_NICE"],
                    "memory": "64GiB",
                    "cores": 8,
                }
            }
        },
        GPU,
        an_image(),
        caches=KEPT,
    ),
    "restarted": lambda: planned(
        {"engine": {"container": {"restart": "unless-stopped"}}}, GPU, an_image()
    ),
    "vllm_kept_cache": lambda: planned({}, GPU, an_image(), caches=KEPT),
    "vllm_kept_cache_on_cpu": lambda: planned(
        {"engine": {"name": "vllm"}, "placement": ON_CPU}, GPU, an_image(), caches=KEPT
    ),
    "vllm_kept_cache_process": lambda: planned(
        {"engine": {"runtime": "process"}, "placement": {"accelerators": 1}},
        a_host(gpus=2, programs=(VLLM_INSTALLED,)),
        caches=KEPT,
    ),
    "own_command_process": lambda: planned({"engine": {"command": OWN}}, CPU),
    "own_command_gpus": lambda: planned(
        {
            "engine": {
                "command": [*OWN_RUN, "--at={{host_ip}}", "--mode={{MODE}}", "{{other}}"],
                "env": {"MODE": "a b"},
                "image": "own:1",
            },
            "placement": {"accelerators": 2},
        },
        GPU,
        an_image(reference="own:1", digest=""),
    ),
    "own_command_docker": lambda: planned(
        {"engine": {"command": OWN, "image": "own:1"}}, GPU, an_image(reference="own:1", digest="")
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_plan_says_exactly_what_will_run(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"plans/{name}.json", CASES[name]().model_dump_json(indent=2) + "\n")


def test_every_flag_and_variable_has_an_origin_and_a_reason() -> None:
    for case in CASES.values():
        for container in case().containers:
            assert all(flag.reason for flag in container.command)
            assert all(variable.reason for variable in container.environment)


def test_an_argument_of_the_user_replaces_the_derived_one_and_stands_last() -> None:
    container = only(CASES["vllm_user_arguments"]())
    assert "--max-model-len" not in container.argv
    assert container.command[-1].origin == Origin.USER
    assert container.argv[-3:] == ("--max_model_len=2048", "--seed", "7")


def test_what_moorage_adds_is_told_apart_from_the_users_own_words() -> None:
    container = only(CASES["vllm_user_arguments"]())
    written = [flag.tokens for flag in container.command if flag.written]
    assert written == [("--max_model_len=2048", "--seed", "7")]
    assert [*container.injected, *(f for f in container.command if f.written)] == [
        *container.command
    ]
    assert not only(CASES["own_command_docker"]()).injected
    entrypoint, *others = only(CASES["vllm_own_entrypoint"]()).command
    assert entrypoint.tokens == ("python3", "-m", "acme", "--for=tiny")
    assert (entrypoint.written, [flag for flag in others if flag.written]) == (True, [])


def test_a_run_command_of_the_fleet_is_the_start_and_decides_about_its_options() -> None:
    container = only(CASES["vllm_own_version"]())
    assert container.argv[:6] == (
        *("vllm", "serve", "/models/tiny"),
        *("--quick", "--max-model-len", "4096"),
    )
    assert container.argv.count("--max-model-len") == 1
    assert container.command[1].reason == "run_command of vllm 0.31.0 in the fleet file"


def test_an_image_of_another_version_is_started_as_ever() -> None:
    host = configured(run_command=OWN_START)
    for image in (an_image(), an_image(engine_version="")):
        assert only(planned({}, host, image)).argv[:3] == ("vllm", "serve", "/models/tiny")


def test_what_a_script_does_first_is_beside_the_command_not_in_it() -> None:
    container = only(CASES["vllm_packages"]())
    assert container.preparation
    assert container.preparation.packages == ("acme-plugin==1.2", "other[fast]>=1,<2")
    assert container.argv[:2] == ("vllm", "serve")
    assert only(CASES["vllm_single"]()).preparation is None


@pytest.mark.parametrize(
    ("case", "removed", "let_through"),
    [
        ("vllm_single", False, False),
        ("vllm_minor_version", True, True),
        ("vllm_minor_version_by_tag", True, True),
        ("vllm_minor_version_kept", False, True),
    ],
)
def test_an_image_newer_than_the_driver_loses_its_libraries_unless_they_are_to_be_kept(
    case: str, removed: bool, let_through: bool
) -> None:
    container = only(CASES[case]())
    assert bool(container.preparation and container.preparation.without_cuda_compat) is removed
    names = {variable.name for variable in container.environment}
    assert ("NVIDIA_DISABLE_REQUIRE" in names) is let_through


def test_arguments_beside_a_whole_command_line_are_not_dropped_in_silence() -> None:
    cpu = {**ON_CPU, "ram": "6GiB"}
    wish = {"engine": {**CUSTOM, "args": ["--threads 4"]}, "placement": cpu}
    plan = planned(wish, a_host(), an_image())
    assert "--threads" not in only(plan).argv
    assert "engine.args: not used, for `engine.command` is the whole line" in plan.warnings
    assert not planned({"engine": CUSTOM, "placement": cpu}, a_host(), an_image()).warnings


def test_a_custom_engine_gets_nothing_that_is_not_written() -> None:
    container = only(CASES["custom_docker"]())
    assert container.argv == ("/serve", "--model=/models/tiny", "--port=40000", "--gpus=")
    assert container.environment == ()
    assert container.injected == ()


def test_a_custom_engine_by_name_is_the_newest_that_the_fleet_configures() -> None:
    plan = CASES["custom_by_name"]()
    assert plan.engine_version == "1.10"
    assert only(plan).argv == (
        *("/acme", "serve", "--model", "/models/tiny", "--port=40000", "--name=tiny"),
        *("--threads", "4"),
    )


def test_a_custom_engine_takes_what_is_stated_of_each_accelerator() -> None:
    spec = a_spec(engine=CUSTOM, memory={"claim": "20GiB"}, placement={"accelerators": 2})
    (seat,) = propose(Subject(spec, a_profile()), a_fleet(ROCM)).seats
    assert (seat.accelerator_type, seat.accelerator_bytes) == ("rocm", (20 * GIB, 20 * GIB))


def test_a_custom_engines_memory_is_estimated_from_the_weights_where_nothing_is_stated() -> None:
    spec = a_spec(engine=CUSTOM, placement={"accelerators": 1})
    (seat,) = propose(Subject(spec, a_profile()), a_fleet(ROCM)).seats
    assert seat.need
    assert "the engine is custom" in seat.need.terms[0].reason
    assert 8 * GIB < seat.accelerator_bytes[0] < 16 * GIB


def test_a_context_of_the_user_is_never_shortened() -> None:
    wish = {"context": 1_000_000}
    plan = planned(wish, GPU, an_image(), context=1_000_000, context_origin="user")
    assert flag(plan, "--max-model-len").tokens[1] == "1000000"
    assert flag(plan, "--tensor-parallel-size").tokens[1] == "2"


def test_a_context_that_the_memory_does_not_hold_is_shortened_with_its_reason() -> None:
    cut = flag(CASES["vllm_length_fitted"](), "--max-model-len")
    length = int(cut.tokens[1])
    room = 80 * GIB - int(8 * GIB * 1.2) - GIB - CONTEXT
    assert length * 128 * 1024 <= room < (length + 1024) * 128 * 1024
    assert cut.origin == Origin.DERIVED
    assert "of 10000000 tokens" in cut.reason


def test_what_an_engine_cannot_do_is_refused() -> None:
    wish = {"lora": LORA, "engine": {"name": "transformers"}}
    with pytest.raises(Failure, match="lora: transformers cannot do that") as caught:
        planned(wish, CPU)
    assert caught.value.cause is Cause.BAD_SPEC
    assert "vllm" in caught.value.suggestion


def test_a_wish_that_the_accelerator_cannot_meet_is_told() -> None:
    (told,) = CASES["vllm_cache_in_ram_on_cpu"]().warnings
    assert "LMCache does not run on cpu" in told


def test_a_model_on_cpu_beside_accelerators_that_cannot_be_used_is_told() -> None:
    host = a_host(accelerators=(an_accelerator(type="nvidia"),))
    (told,) = planned({"engine": {"name": "vllm"}}, host, an_image()).warnings
    assert "on CPU: vllm cannot use the accelerators of gpu-1 (nvidia)" in told


def test_adapters_and_drafts_are_mounted_where_the_flags_look_for_them() -> None:
    container = only(CASES["vllm_lora"]())
    assert [(m.source, m.target) for m in container.mounts[1:]] == [
        ("/adapters/poet", "/adapters/poet"),
        ("/adapters/judge", "/adapters/judge"),
    ]
    draft = only(CASES["vllm_eagle3"]())
    assert (draft.mounts[-1].source, draft.mounts[-1].target) == ("/drafts/eagle", "/draft")
    assert '"model": "/draft"' in flag(CASES["vllm_eagle3"](), "--speculative-config").tokens[1]


def test_a_plan_never_holds_the_value_of_a_secret() -> None:
    secrets = [v for v in only(CASES["vllm_secrets"]()).environment if v.secret]
    assert [(v.name, v.value, v.secret) for v in secrets] == [
        ("HF_TOKEN", "", "hub-token"),
        ("VLLM_API_KEY", "", "key"),
    ]


@pytest.mark.parametrize(("newer", "value"), [(True, ["1"]), (False, [])])
def test_an_image_of_a_newer_minor_runtime_is_let_through_by_nvidias_hook(
    newer: bool, value: list[str]
) -> None:
    container = only(planned({}, GPU, an_image(newer_runtime=newer)))
    found = [v.value for v in container.environment if v.name == "NVIDIA_DISABLE_REQUIRE"]
    assert found == value


def test_only_the_claimed_devices_and_the_model_are_given() -> None:
    container = only(CASES["vllm_tp2"]())
    assert container.devices == ("GPU-0", "GPU-1")
    assert [(m.source, m.read_only) for m in container.mounts] == [("/store/org/tiny", True)]


@pytest.mark.parametrize(("family", "eager"), [("Ascend310P3", True), ("Ascend910B3", False)])
def test_the_chip_family_of_the_claimed_accelerators_counts(family: str, eager: bool) -> None:
    npus = (an_accelerator(type="cann", family=family),)
    wish = {"engine": {"image": "own/ascend:1"}}
    plan = planned(wish, a_host(accelerators=npus), an_image(reference="own/ascend:1"))
    assert ("--enforce-eager" in only(plan).argv) is eager


def test_links_that_lead_out_of_the_model_are_mounted_as_what_they_stand_for() -> None:
    linked = ModelFile(name="model.safetensors", size=1, target="/blobs/abc")
    plain = ModelFile(name="config.json", size=1)
    container = only(planned({}, GPU, an_image(), a_model(files=(plain, linked))))
    assert [(m.source, m.target, m.read_only) for m in container.mounts] == [
        ("/store/org/tiny/config.json", "/models/tiny/config.json", True),
        ("/blobs/abc", "/models/tiny/model.safetensors", True),
    ]


def environment(plan: LaunchPlan) -> dict[str, str]:
    return {variable.name: variable.value for variable in only(plan).environment}


@pytest.mark.parametrize(
    ("seconds", "env", "value"),
    [
        (900, {}, "900"),
        (7200, {}, "7200"),
        (600, {}, None),
        (60, {}, None),
        (7200, {"VLLM_ENGINE_READY_TIMEOUT_S": "3000"}, "3000"),
    ],
)
def test_vllm_waits_for_its_own_start_as_long_as_moorage_does(
    seconds: int, env: dict[str, str], value: str | None
) -> None:
    deadlines = {"deadlines": {"load_seconds": seconds}}
    plan = planned({"engine": {"env": env}, "readiness": deadlines}, GPU, an_image())
    assert environment(plan).get("VLLM_ENGINE_READY_TIMEOUT_S") == value
    on_cpu = planned(
        {"engine": {"name": "vllm", "env": env}, "readiness": deadlines, "placement": ON_CPU},
        a_host(gpus=0),
        an_image(**CPU_IMAGE),
    )
    assert environment(on_cpu).get("VLLM_ENGINE_READY_TIMEOUT_S") == value


@pytest.mark.parametrize("engine", ["vllm", "transformers"])
def test_a_process_sees_only_the_accelerators_that_it_claimed(engine: str) -> None:
    wish = {
        "engine": {"name": engine, "runtime": "process"},
        "placement": {"accelerators": ["gpu-1:cuda:1", "gpu-1:cuda:3"]},
    }
    host = a_host(gpus=4, programs=(VLLM_INSTALLED, *CPU.programs))
    seen = environment(planned(wish, host))
    # NVML counts in the order of the bus; CUDA does so only when it is told to.
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["CUDA_DEVICE_ORDER"]) == ("1,3", "PCI_BUS_ID")


@pytest.mark.parametrize("engine", ["vllm", "transformers"])
def test_a_container_sees_all_that_it_is_given_whatever_its_number_on_the_host(engine: str) -> None:
    wish = {
        "engine": {"name": engine, "image": "own:1"},
        "placement": {"accelerators": ["gpu-1:cuda:3"]},
    }
    plan = planned(wish, GPU, an_image(reference="own:1"))
    assert only(plan).devices == ("GPU-3",)
    assert "CUDA_VISIBLE_DEVICES" not in environment(plan)


def test_inside_a_container_the_path_of_the_host_means_nothing() -> None:
    assert "/opt/venv" not in only(CASES["transformers_docker"]()).argv[0]


def test_every_replica_has_a_name_and_a_port_of_its_own() -> None:
    containers = CASES["vllm_two_replicas"]().containers
    assert [c.name for c in containers] == [
        "moorage-tiny.v1-r0-leader",
        "moorage-tiny.v1-r1-leader",
    ]
    assert len({c.endpoint for c in containers}) == 2


def test_the_engine_version_is_the_images_or_the_programs() -> None:
    assert CASES["vllm_single"]().engine_version == "0.32.0"
    assert CASES["vllm_process"]().engine_version == "0.31.0"
    assert CASES["transformers_docker"]().engine_version == ""
    assert CASES["vllm_own_version"]().engine_version == "0.31.0"
    assert CASES["own_command_process"]().engine_version == ""
    assert CASES["custom_docker"]().engine_version == ""


@pytest.mark.parametrize(
    ("bind", "endpoint"),
    [
        ("127.0.0.1", "http://127.0.0.1:40000"),
        ("0.0.0.0", "http://127.0.0.1:40000"),
        ("10.0.0.7", "http://10.0.0.7:40000"),
        ("::", "http://[::1]:40000"),
        ("::1", "http://[::1]:40000"),
        ("fd00::7", "http://[fd00::7]:40000"),
    ],
)
def test_the_endpoint_is_where_the_engine_can_be_reached(bind: str, endpoint: str) -> None:
    assert a_container(bind=bind).endpoint == endpoint


def test_hosts_of_one_replica_have_the_same_image_and_model_and_their_own_part() -> None:
    for case in ("hosts_native_tp8", "hosts_native_cpu", "hosts_ray", "hosts_ray_uneven"):
        containers = CASES[case]().containers
        assert len({(c.image, c.mounts[0].target) for c in containers}) == 1
        assert len({c.name for c in containers}) == len(containers)
        assert {c.isolation.network for c in containers} == {NetworkMode.HOST}
        assert [c.role for c in containers].count(Role.LEADER) == 1


def test_the_head_of_a_cluster_comes_first_and_is_awaited() -> None:
    head, leader, follower = CASES["hosts_ray"]().containers
    assert [c.role for c in (head, leader, follower)] == ["ray-head", "leader", "follower"]
    assert (head.awaits, leader.awaits, follower.awaits) == ("", head.name, head.name)
    assert head.endpoint == "http://10.0.0.1:41000"
    assert leader.isolation.shares_memory_of == leader.isolation.sees_processes_of == head.name
    assert {m.source for m in head.mounts if m.volume} == {
        m.source for m in leader.mounts if m.volume
    }
    assert not any(m.volume for m in follower.mounts)
    assert [c.runs_engine for c in (head, leader, follower)] == [False, True, False]
    assert all(c.runs_engine for c in CASES["hosts_native_cpu"]().containers)


def test_the_hosts_shared_memory_is_borrowed_from_nobody() -> None:
    wish = {
        "engine": {"distributed": "ray", "container": {"ipc": "host"}},
        "placement": {"hosts": 2, "accelerators": 8},
    }
    for container in over_hosts(wish, *TWO_GPU_HOSTS).containers:
        assert container.isolation.ipc == IpcMode.HOST
        assert container.isolation.shares_memory_of == ""


@pytest.mark.parametrize(
    ("engine", "version", "said"),
    [
        ({"command": ["vllm", "serve"], "version": "0.32.0"}, "0.32.0", "engine.command"),
        ({"distributed": "native", "version": "0.10.2"}, "0.10.2", "cannot join hosts itself"),
    ],
)
def test_what_cannot_be_joined_is_refused(engine: Wish, version: str, said: str) -> None:
    wish = {"engine": engine, "placement": {"hosts": 2, "accelerators": 8}}
    with pytest.raises(Failure, match=said) as caught:
        over_hosts(wish, *TWO_GPU_HOSTS, image=an_image(engine_version=version))
    assert caught.value.cause is Cause.BAD_SPEC


def test_a_version_that_cannot_join_hosts_itself_is_joined_by_ray() -> None:
    wish = {"engine": {"version": "0.10.2"}, "placement": {"hosts": 2, "accelerators": 8}}
    image = an_image(engine_version="0.10.2", reference="vllm/vllm-openai:v0.10.2")
    assert len(over_hosts(wish, *TWO_GPU_HOSTS, image=image).containers) == 3


def test_an_interface_that_is_not_known_is_told_and_left_to_the_engine() -> None:
    wish = {"engine": {"name": "vllm"}, "placement": {**ON_CPU, "hosts": 2}}
    spec, known = a_spec(**wish), a_profile()
    snapshot = a_fleet(*(a_host(f"h{at}", 0, bind=f"10.0.0.{at}") for at in (1, 2)))
    placement = propose(Subject(spec, known), snapshot)
    placed = Placed(spec, a_model(), known, placement, snapshot, "tiny.v1")
    plan = plan_launch(placed, an_image(**CPU_IMAGE), LEDGER)
    assert sum("write `interface`" in warning for warning in plan.warnings) == 2
    names = {v.name for container in plan.containers for v in container.environment}
    assert "VLLM_HOST_IP" in names
    assert "GLOO_SOCKET_IFNAME" not in names
