"""What is valid, to begin with."""

from __future__ import annotations

import json
import struct
from typing import Any

from tests.hub.tiny import CONFIG

SPECS: list[dict[str, Any]] = [
    {"name": "tiny", "source": "file://model"},
    {
        "name": "tiny",
        "source": "file://model",
        "engine": {
            "name": "vllm",
            "version": "0.32.0",
            "args": ["--max-model-len 1k", "--hf-overrides", '{"a": {"b": [1]}}', "-tp=1"],
            "env": {"VLLM_LOGGING_LEVEL": "DEBUG"},
            "shm": "2GiB",
            "container": {"ulimits": {"memlock": -1}, "memory": "4GiB", "cores": 2, "user": 1},
            "packages": ["name==1.2"],
        },
        "context": 512,
        "concurrency": 2,
        "placement": {
            "accelerators": 1,
            "accelerator_kinds": ["*H100*"],
            "policy": "whole",
            "strategy": "binpack",
            "seed": 7,
            "host_labels": {"site": "a"},
            "across_hosts": True,
            "ram": "1GiB",
        },
        "memory": {"claim": "3GiB", "activation": "1MiB"},
        "labels": {"tier": "batch"},
        "replicas": 2,
        "port": "auto",
    },
    {
        "name": "tiny",
        "source": "file://model",
        "extended_kv_cache": {"ram": "1GiB", "ratio": 0.5, "chunk": 256},
        "speculative": {"method": "ngram", "tokens": 4, "ngram_min": 1, "ngram_max": 2},
        "readiness": {
            "deadlines": {"load_seconds": 10},
            "probe": {"path": "/health", "prompt": "Say hello."},
            "prompts": [{"prompt": "1+1?", "expect": "2|two", "max_seconds": 3.5}],
        },
        "replace": {"strategy": "canary", "canary_share": 0.5},
        "stopping": {"drain_seconds": 3},
        "secrets": {"HF_TOKEN": "hf-team"},
        "placement": {"policy": "baseline", "accelerators": ["gpu-1:cuda:0"]},
    },
    {
        "name": "tiny",
        "source": "file://model",
        "engine": {
            "name": "custom",
            "image": "acme/server:1",
            "command": ["/serve", "{{model_path}}", "--port={{port}}"],
        },
        "placement": {"accelerators": 0, "cores": 1},
    },
    {
        "name": "tiny",
        "source": "file://model",
        "engine": {"runtime": "docker", "distributed": "native"},
        "placement": {"across_hosts": True, "hosts": 2, "accelerators": 4},
    },
]

FLEETS: list[dict[str, Any]] = [
    {
        "hosts": [
            {
                "name": "gpu-1",
                "labels": {"site": "a"},
                "accelerators": [
                    {"type": "cuda", "index": 0, "name": "NVIDIA H100", "memory": "80GiB"},
                    {
                        "type": "cuda",
                        "index": 1,
                        "memory": 80_000_000_000,
                        "runtime_version": "12.9",
                    },
                ],
                "ram": "256GiB",
                "cores": 64,
                "reserve": {"ram": "1GiB", "accelerator_memory": "1GiB"},
                "ports": "40000-40009",
                "bind": "127.0.0.1",
            },
            {
                "name": "gpu-2",
                "address": "ssh://root@127.0.0.2:22/run/docker.sock",
                "ssh": {"key": "ssh-key", "known_hosts": "/etc/known"},
                "bind": "10.255.255.1",
                "accelerators": [{"type": "cuda", "index": 0, "memory": "24GiB"}],
                "ram": "64GiB",
                "store": "/srv/moorage",
                "interface": "eth0",
            },
        ],
        "engines": {
            "vllm": {
                "default_version": "0.32.0",
                "versions": {
                    "0.32.0": {"image": "acme/vllm:1", "run_command": "{{model_path}} -q"}
                },
            }
        },
        "registries": {"default": "mirror.example.com", "insecure": ["registry:5000"]},
        "avoid": [{"host": "gpu-2", "accelerators": [0], "reason": "service"}],
        "clusters": {"ray-a": {"dashboard": "http://head:8265", "serve": "http://head:8000"}},
        "helper_image": "python:3.12-slim",
    },
    {"hosts": [{"name": "local", "accelerators": [], "ram": "8GiB", "unified_memory": True}]},
]

POLICY: dict[str, Any] = {
    "fleet": "fleet.yaml",
    "api": {
        "runtimes": ["docker"],
        "registries": ["official", "registry.example.com/team"],
        "digests": True,
        "args": ["safe", "--max-*"],
        "variables": ["HF_TOKEN"],
        "ipc": ["private"],
        "file_roots": ["store", "/srv/models"],
        "hosts": ["gpu-*"],
        "host_labels": {"site": "a"},
        "replicas": 4,
        "accelerators": 8,
        "owner_replicas": 8,
    },
    "cli": {"trust_remote_code": False, "spec_folders": ["/"], "groups": ["*"]},
}

LLAMA: dict[str, Any] = {
    **CONFIG,
    "vocab_size": 500,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "torch_dtype": "bfloat16",
    "rope_theta": 10000.0,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512},
    "sliding_window": None,
    "layer_types": ["full_attention", "sliding_attention"],
    "tie_word_embeddings": False,
}
CONFIGS: list[dict[str, Any]] = [
    LLAMA,
    {
        **LLAMA,
        "architectures": ["MixtralForCausalLM"],
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    },
    {
        "model_type": "mamba",
        "architectures": ["MambaForCausalLM"],
        **{"hidden_size": 64, "num_hidden_layers": 2, "state_size": 16, "expand": 2},
        **{"conv_kernel": 4, "time_step_rank": 4, "vocab_size": 500, "intermediate_size": 128},
    },
    {
        "architectures": ["Qwen2VLForConditionalGeneration"],
        "model_type": "qwen2_vl",
        "text_config": LLAMA,
        "vision_config": {"num_heads": 4, "hidden_size": 64, "depth": 2, "patch_size": 14},
    },
]

TOKENIZER = {"chat_template": "{{ messages }}", "model_max_length": 2048}
INDEX = {"metadata": {"total_size": 128}, "weight_map": {"embed": "model.safetensors"}}
MODELOPT = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
MODULES = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
TENSORS: dict[str, Any] = {
    "__metadata__": {"format": "pt"},
    "model.embed_tokens.weight": {"dtype": "BF16", "shape": [500, 64], "data_offsets": [0, 64_000]},
    "lm_head.weight": {"dtype": "BF16", "shape": [500, 64], "data_offsets": [64_000, 128_000]},
}
LISTING: dict[str, Any] = {
    "id": "org/tiny",
    "sha": "a3c1f0e5b7d94c2e8f6a1b0d3e5c7f9a2b4d6e8f",
    "siblings": [
        {"rfilename": "config.json", "size": 400, "blobId": "1" * 40},
        {"rfilename": "tokenizer_config.json", "size": 60, "blobId": "2" * 40},
        {
            "rfilename": "model.safetensors",
            "size": 128_300,
            "blobId": "3" * 40,
            "lfs": {"sha256": "4" * 64, "size": 128_300, "pointerSize": 130},
        },
    ],
}
ANSWER: dict[str, Any] = {
    "object": "list",
    "id": "x",
    "data": [{"id": "tiny", "object": "model", "max_model_len": 512}],
    "choices": [
        {"index": 0, "text": "hello", "message": {"role": "assistant", "content": "hello"}}
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1},
}
METRICS = 'vllm:num_requests_running{model="tiny"} 1.0\nvllm:num_requests_waiting 2\n'


def safetensors(header: bytes, data: int = 128_000) -> bytes:
    """A file with a header; its data are zeros."""
    return struct.pack("<Q", len(header)) + header + bytes(data)


def whole_model() -> dict[str, bytes]:
    """A model's folder."""
    return {
        "config.json": json.dumps(LLAMA).encode(),
        "tokenizer_config.json": json.dumps(TOKENIZER).encode(),
        "model.safetensors": safetensors(json.dumps(TENSORS).encode()),
    }
