# ruff: noqa: ARG001, ARG005 - stand-ins have the signatures of what they replace
"""What vLLM itself says about weights and KV cache, in the schema of tests/conformance/data/memory.

Runs in the environment of vLLM 0.32 for CPU; needs neither weights nor a GPU:

    VENV/bin/python scripts/memory_oracle.py FOLDER... [--rows FILE] [--write]

Each FOLDER holds `config.json`. The rows are taken from FILE, else from the folder's `rows.json`,
else from the inputs of its `expected.json`: a list of objects with the settings that differ from
the defaults. The result is printed, or written to the folder's `expected.json`.

vLLM's model class of each pipeline stage is built on torch's meta device, in a process group that
only pretends to have its ranks. Its KV specs go through vLLM's own grouping, fit and concurrency
functions. Where the CPU platform differs from CUDA, CUDA is imitated: see `imitate_cuda`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.update(
    VLLM_DIST_IDENT="oracle",
    VLLM_LOGGING_LEVEL=os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"),
    HF_HUB_OFFLINE="1",
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
)

import torch
import torch.distributed as dist
import vllm
from torch.fx.experimental import _config as fx_config
from torch.testing._internal.distributed.fake_pg import FakeStore
from vllm.config import VllmConfig, set_current_vllm_config
from vllm.distributed import parallel_state
from vllm.distributed.device_communicators.shm_broadcast import MessageQueue
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.kernels import linear
from vllm.model_executor.layers.fused_moe import config as moe_config
from vllm.model_executor.layers.fused_moe.expert_map_manager import ExpertMapManager
from vllm.model_executor.model_loader.utils import initialize_model
from vllm.platforms import current_platform
from vllm.platforms.interface import Platform
from vllm.triton_utils import triton
from vllm.utils.torch_utils import set_default_torch_dtype
from vllm.v1.attention.backend import AttentionBackend, MultipleOf
from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend
from vllm.v1.core import kv_cache_utils as kv
from vllm.v1.core.kv_cache_utils import KVCacheConfig
from vllm.v1.kv_cache_interface import AttentionSpec, MambaSpec, UniformTypeKVCacheSpecs
from vllm.v1.worker.gpu.attn_utils import get_kv_cache_spec

DEFAULTS: dict[str, Any] = {
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "enable_expert_parallel": False,
    "max_model_len": None,
    "max_num_batched_tokens": 8192,
    "kv_cache_dtype": "auto",
    "hybrid_kv_cache_manager": True,
    "enable_prefix_caching": None,
    "mamba_ssm_cache_dtype": "auto",
    "block_size": None,
    "runner": "auto",
    "kv_pool_bytes": 20 << 30,
}
KERNEL_BLOCK = MultipleOf(16)
"""Tokens per block of FlashAttention on CUDA; the CPU's kernels use 32."""

Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--write", action="store_true", help="write expected.json")
    parser.add_argument(
        "--parameters", action="store_true", help="list the parameters of each stage"
    )
    arguments = parser.parse_args()
    imitate_cuda()
    for folder in arguments.folders:
        rows = []
        for changed in read_rows(folder, arguments.rows):
            row = {**DEFAULTS, **changed}
            rows.append({"input": row, "expected": expected(folder, row, arguments.parameters)})
        result = {"vllm": vllm.__version__.split("+")[0], "model": folder.name, "rows": rows}
        text = json.dumps(result, indent=1)
        if arguments.write:
            (folder / "expected.json").write_text(text + "\n")
        else:
            print(text, flush=True)


def read_rows(folder: Path, path: Path | None) -> list[Row]:
    named = path or folder / "rows.json"
    if named.exists():
        return list(json.loads(named.read_text()))
    known = folder / "expected.json"
    return (
        [row["input"] for row in json.loads(known.read_text())["rows"]] if known.exists() else [{}]
    )


def imitate_cuda() -> None:
    """Undo what the CPU platform changes: block sizes, state types, prefix caching, runner."""
    platform = type(current_platform)
    platform.check_and_update_config = classmethod(_check_and_update_config)
    platform.update_block_size_for_backend = classmethod(
        Platform.update_block_size_for_backend.__func__
    )
    platform.get_device_communicator_cls = classmethod(
        lambda cls: (
            "vllm.distributed.device_communicators.base_device_communicator.DeviceCommunicatorBase"
        )
    )
    platform.get_attn_backend_cls = classmethod(_attention_backend)
    for backend in (CPUAttentionBackend, *_subclasses(AttentionBackend)):
        if "get_supported_kernel_block_sizes" in vars(backend):
            backend.get_supported_kernel_block_sizes = staticmethod(
                lambda kv_cache_spec=None: [KERNEL_BLOCK]
            )
    # The V2 runner with asynchronous scheduling: one batch per stage, and one ahead.
    VllmConfig.max_concurrent_batches = property(
        lambda config: config.parallel_config.pipeline_parallel_size + 1
    )
    # The parameters do not depend on the kernel that reads them later.
    linear.is_supported_and_can_implement_kernel = lambda *args, **named: (True, None)
    ExpertMapManager.get_compressed_map_string = lambda self: ""
    # The CPU build has only a stub of Triton.
    triton.set_allocator = lambda allocator: None
    moe_config.current_platform = _WithXpu()
    fx_config.meta_nonzero_assume_all_nonzero = True
    new_group = dist.new_group
    dist.new_group = lambda *args, **named: new_group(*args, **{**named, "backend": "fake"})
    parallel_state._node_count = lambda *args, **named: 1
    parallel_state.in_the_same_node_as = lambda group, **named: [True] * dist.get_world_size(group)
    MessageQueue.create_from_process_group = staticmethod(lambda *args, **named: None)


def expected(folder: Path, row: Row, parameters: bool = False) -> dict[str, Any]:
    """The `expected` object of one row; a refusal of vLLM becomes `rejected`."""
    try:
        return _expected(folder, row, parameters)
    except Exception as error:
        traceback.print_exc(limit=-6)
        return {"rejected": True, "error": _reason(error)}
    finally:
        _leave_groups()
        gc.collect()


def _reason(error: Exception) -> str:
    text = str(error).strip()
    if found := re.search(r"Value error, (.*?) \[type=", text, re.DOTALL):
        return f"ValueError: {found[1]}"
    return f"{type(error).__name__}: {text[:400]}"


def _check_and_update_config(cls: type, config: VllmConfig) -> None:
    if config.parallel_config.worker_cls == "auto":
        config.parallel_config.worker_cls = "vllm.v1.worker.cpu_worker.CPUWorker"
    config.compilation_config.cudagraph_capture_sizes = []
    os.environ["VLLM_DISABLE_SHARED_EXPERTS_STREAM"] = "1"


def _attention_backend(
    cls: type, selected_backend: Any, attn_selector_config: Any, num_heads: int | None = None
) -> str:
    backends = "vllm.v1.attention.backends."
    if attn_selector_config.use_mla:
        return backends + "mla.cpu_mla.CPUMLABackend"
    return backends + "cpu_attn.CPUAttentionBackend"


class _WithXpu:
    """The current platform, but with support for experts without a gate, as on GPUs."""

    def is_xpu(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(current_platform, name)


def _subclasses(cls: type[Any]) -> list[type[Any]]:
    return [cls, *(sub for child in cls.__subclasses__() for sub in _subclasses(child))]


def _expected(folder: Path, row: Row, parameters: bool) -> dict[str, Any]:
    stages, specs = [], []
    config = None
    for stage in range(row["pipeline_parallel_size"]):
        config = _config(folder, row)
        found, spec = _stage(config, row, stage, parameters)
        stages.append(found)
        specs.append(spec)
    assert config is not None
    model_class = stages[0].pop("model_class")
    for later in stages[1:]:
        later.pop("model_class")
    model = config.model_config
    return {
        "model_class": model_class,
        "dtype": str(model.dtype).removeprefix("torch."),
        "max_model_len": model.max_model_len,
        "enable_prefix_caching": config.cache_config.enable_prefix_caching,
        "model_runner": "v2",
        "max_in_flight_tokens": config.max_in_flight_tokens,
        "weight_bytes_per_rank": max(stage["weight_bytes"] for stage in stages),
        **_cache(config, specs, stages, row["kv_pool_bytes"]),
        "stages": stages,
    }


def _config(folder: Path, row: Row) -> VllmConfig:
    tp, pp = row["tensor_parallel_size"], row["pipeline_parallel_size"]
    config = EngineArgs(
        model=str(folder),
        skip_tokenizer_init=True,
        load_format="dummy",
        trust_remote_code=False,
        tensor_parallel_size=tp,
        pipeline_parallel_size=pp,
        enable_expert_parallel=row["enable_expert_parallel"],
        max_model_len=row["max_model_len"],
        max_num_batched_tokens=row["max_num_batched_tokens"],
        kv_cache_dtype=row["kv_cache_dtype"],
        disable_hybrid_kv_cache_manager=not row["hybrid_kv_cache_manager"] or None,
        enable_prefix_caching=row["enable_prefix_caching"],
        mamba_ssm_cache_dtype=row["mamba_ssm_cache_dtype"],
        block_size=row["block_size"],
        runner=row["runner"],
        distributed_executor_backend="mp" if tp * pp > 1 else None,
    ).create_engine_config()
    config.cache_config.kv_cache_layout = "LBNHC"
    return config


def _stage(config: VllmConfig, row: Row, stage: int, parameters: bool) -> tuple[Row, Row]:
    tp, pp = row["tensor_parallel_size"], row["pipeline_parallel_size"]
    rank = stage * tp
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=tp * pp)
    config.parallel_config.rank = rank
    try:
        with set_current_vllm_config(config):
            parallel_state.init_distributed_environment(tp * pp, rank, "env://", 0, "fake")
            parallel_state.initialize_model_parallel(tp, pp, backend="fake")
            dtype = config.model_config.dtype
            with set_default_torch_dtype(dtype), torch.device("meta"):
                model = initialize_model(config)
            current_platform.update_block_size_for_backend(config)
            specs = get_kv_cache_spec(config)
        return _weights(model, stage, parameters), specs
    finally:
        _leave_groups()


def _weights(model: torch.nn.Module, stage: int, parameters: bool) -> Row:
    counts: Counter[str] = Counter()
    total = 0
    for _, parameter in model.named_parameters():
        counts[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
        total += parameter.numel() * parameter.element_size()
    found: Row = {
        "model_class": type(model).__name__,
        "pp_rank": stage,
        "weight_bytes": total,
        "parameters": dict(counts),
        "buffer_bytes": sum(b.numel() * b.element_size() for _, b in model.named_buffers()),
    }
    if parameters:
        found["list"] = {
            name: [str(p.dtype).removeprefix("torch."), *p.shape]
            for name, p in model.named_parameters()
        }
    return found


def _cache(config: VllmConfig, specs: list[Row], stages: list[Row], pool: int) -> Row:
    merged: Row = {}
    for spec in specs:
        merged.update(spec)
    groups = kv.get_kv_cache_groups(config, merged)
    longest = config.model_config.max_model_len
    blocks, fits, pages = [], [], []
    for stage, spec in zip(stages, specs, strict=True):
        mine = kv._project_kv_cache_groups_to_worker(groups, spec)
        stage["kv_layers"] = _kinds(spec.values())
        if not any(group.layer_names for group in mine):
            continue
        page = kv._pool_bytes_per_block(config, mine)
        stage["bytes_per_block"] = page
        stage["full_request_bytes"] = kv._max_memory_usage_bytes_from_groups(config, mine)
        stage["num_blocks_alone"] = pool // page
        pages.append(page)
        blocks.append(pool // page)
        fits.append(kv._estimate_max_model_len_from_groups(config, mine, pool - page))
    if not pages:
        return _no_cache()
    page, number = max(pages), min(blocks)
    request = max(stage.get("full_request_bytes", 0) for stage in stages)
    whole = KVCacheConfig(num_blocks=number, kv_cache_tensors=[], kv_cache_groups=groups)
    fit = min(fits)
    return {
        "block_size": _block_size(config, groups),
        "bytes_per_block": page,
        "blocks_per_full_request": request // page,
        "full_request_bytes": request,
        "num_blocks": number,
        "concurrency": kv.get_max_concurrency_for_kv_cache_config(config, whole),
        "max_fit_len": fit,
        "full_request_fits": fit >= longest,
        "groups": [_group(config, group) for group in groups],
    }


def _no_cache() -> Row:
    return {
        "block_size": None,
        "bytes_per_block": 0,
        "blocks_per_full_request": 0,
        "full_request_bytes": 0,
        "num_blocks": None,
        "concurrency": None,
        "max_fit_len": None,
        "full_request_fits": True,
        "groups": [],
    }


def _block_size(config: VllmConfig, groups: list[Any]) -> int:
    sizes = [
        group.kv_cache_spec.block_size
        for group in groups
        if not isinstance(group.kv_cache_spec, MambaSpec)
    ]
    # Without attention layers vLLM still reports the block size that attention would have.
    return int(min(sizes, default=config.cache_config.block_size))


def _group(config: VllmConfig, group: Any) -> Row:
    spec = group.kv_cache_spec
    first = spec
    if isinstance(spec, UniformTypeKVCacheSpecs):
        first = next(iter(spec.kv_cache_specs.values()))
        required = spec.max_memory_usage_pages(config)
    else:
        required = -(-spec.max_memory_usage_bytes(config) // spec.page_size_bytes)
    return {
        "layers": len(group.layer_names),
        **_kind(first),
        "blocks_per_full_request": required,
    }


def _kind(spec: Any) -> Row:
    window = getattr(spec, "sliding_window", None) or getattr(spec, "attention_chunk_size", None)
    return {
        "kind": type(spec).__name__,
        "block_size": spec.block_size,
        "page_bytes": spec.page_size_bytes,
        "window": window if isinstance(spec, AttentionSpec) else None,
    }


def _kinds(specs: Any) -> list[Row]:
    counts: Counter[str] = Counter(json.dumps(_kind(spec)) for spec in specs)
    return [{"layers": count, **json.loads(kind)} for kind, count in counts.items()]


def _leave_groups() -> None:
    parallel_state.destroy_model_parallel()
    parallel_state.destroy_distributed_environment()
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
