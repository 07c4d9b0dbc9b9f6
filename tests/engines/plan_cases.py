"""Plans that are kept whole in golden files, by the name of the file."""

from __future__ import annotations

from collections.abc import Callable

from moorage.engines.launch import LaunchPlan
from moorage.images.image import COMPILER
from moorage.spec import Mode
from tests.builders import (
    ON_CPU,
    a_cpu_host,
    a_host,
    an_accelerator,
    an_image,
)
from tests.engines.planning import (
    ACME,
    CPU,
    CPU_IMAGE,
    CUSTOM,
    GAUDIS,
    GPU,
    KEPT,
    LARGE,
    LLAMA_IMAGE,
    LLAMA_INSTALLED,
    LORA,
    NPUS,
    OLD_DRIVER,
    OWN,
    OWN_ENGINE,
    OWN_START,
    PPUS,
    ROCM,
    ROCM_NODES,
    TWO_CPU_HOSTS,
    TWO_GPU_HOSTS,
    UNEVEN_HOSTS,
    VLLM_INSTALLED,
    configured,
    llama_planned,
    over_hosts,
    planned,
)
from tests.placement.test_partial_offload import MEMORY as DIVISIBLE

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
    "vllm_without_compiler": lambda: planned(
        {"engine": {"name": "vllm"}, "placement": {**ON_CPU, "ram": "3GiB"}},
        GPU,
        an_image(reference="moorage/vllm-cpu:0.32.0", lacks=(COMPILER,)),
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
    "vllm_transcription": lambda: planned({}, GPU, an_image(), mode=Mode.TRANSCRIPTION),
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
    "llama_cpu": lambda: llama_planned(
        {"placement": ON_CPU, "context": 1000}, a_host(gpus=0), image=an_image(**LLAMA_IMAGE)
    ),
    "llama_two_gpus": lambda: llama_planned(
        {"placement": {"accelerators": 2}, "concurrency": 4},
        GPU,
        "big-00001-of-00002.gguf",
        "big-00002-of-00002.gguf",
        "mmproj-F16.gguf",
        image=an_image(**LLAMA_IMAGE),
    ),
    "llama_process": lambda: llama_planned(
        {
            "engine": {"runtime": "process", "args": ["--cache-type-k q8_0", "-t 8"]},
            "placement": {**ON_CPU, "cores": 4},
            "secrets": {"LLAMA_API_KEY": "key"},
        },
        a_cpu_host(programs=(LLAMA_INSTALLED,), cpus=8),
    ),
    "llama_partial": lambda: llama_planned(
        {"placement": {"partial_offload": True}},
        a_host(accelerators=(an_accelerator(gib=24),)),
        image=an_image(**LLAMA_IMAGE),
        memory=DIVISIBLE,
        layers=40,
    ),
    "llama_lora": lambda: llama_planned(
        {"lora": LORA, "placement": {"accelerators": 1}}, GPU, image=an_image(**LLAMA_IMAGE)
    ),
    "llama_lora_process": lambda: llama_planned(
        {"lora": LORA[1:], "engine": {"runtime": "process"}, "placement": ON_CPU},
        a_cpu_host(programs=(LLAMA_INSTALLED,)),
    ),
    "llama_drafts": lambda: llama_planned(
        {
            "speculative": {
                "method": "draft_model",
                "model": "file:///drafts/small.gguf",
                "tokens": 4,
                "min_acceptance": 0.5,
            }
        },
        GPU,
        image=an_image(**LLAMA_IMAGE),
    ),
    "llama_embedding": lambda: llama_planned(
        {"placement": ON_CPU}, a_host(gpus=0), image=an_image(**LLAMA_IMAGE), mode=Mode.EMBEDDING
    ),
    "llama_reachable": lambda: llama_planned(
        {"placement": ON_CPU, "port": 41000},
        a_host(gpus=0, bind="10.0.0.5"),
        image=an_image(**LLAMA_IMAGE),
        mode=Mode.RERANKING,
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
    "own_command_process": lambda: planned(
        {"engine": {"name": "transformers", "command": OWN}}, CPU
    ),
    "own_command_gpus": lambda: planned(
        {"engine": {"name": "vllm", **OWN_ENGINE}, "placement": {"accelerators": 2}},
        GPU,
        an_image(reference="own:1", digest=""),
    ),
    "unnamed_command_gpus": lambda: planned(
        {"engine": OWN_ENGINE, "placement": {"accelerators": 2}},
        GPU,
        an_image(reference="own:1", digest=""),
    ),
    "own_command_docker": lambda: planned(
        {"engine": {"name": "vllm", "command": OWN, "image": "own:1"}},
        GPU,
        an_image(reference="own:1", digest=""),
    ),
}
