"""Runs memory cases in the schema of `conformance/memory`: python -m tests.conformance.memory DIR.

A row becomes a spec; its profile and its memory model answer, as they do for a placement.

Prints each difference and ends with the line `N passed, N failed`.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from moorage.common.refusal import Reason, Refusal
from moorage.memory.demand import memory_model
from moorage.memory.engine_setup import EngineSetup
from moorage.memory.need import Batch, MemoryPrediction, MemoryQuery
from moorage.memory.options import MemorySettings
from moorage.models.profile import derive_profile
from moorage.models.source import ResolvedModel, TensorHeaders, WeightSummary
from moorage.placement.memory import memory_request
from moorage.spec import ModelSpec
from tests.memory.prediction import predict_memory

EXACT = (
    *("dtype", "max_model_len", "enable_prefix_caching", "max_in_flight_tokens", "block_size"),
    *("bytes_per_block", "blocks_per_full_request", "full_request_bytes", "num_blocks"),
    *("max_fit_len", "full_request_fits"),
)
GROUP_FIELDS = (
    *("layers", "kind", "block_size", "page_bytes", "window", "blocks_per_full_request"),
)
WEIGHT_TOLERANCE = 1e-3
CONCURRENCY_TOLERANCE = 1e-5

VALUES = (
    *("tensor_parallel_size", "pipeline_parallel_size", "max_model_len", "runner", "block_size"),
    *("max_num_batched_tokens", "kv_cache_dtype", "mamba_ssm_cache_dtype"),
)
BATCHED = MemorySettings().max_num_batched_tokens

Difference = tuple[str, Any, Any]


class Model:
    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text())
        plain = folder / "tensors.json"
        text = plain.read_bytes() if plain.exists() else _unpacked(folder / "tensors.json.gz")
        self.tensors = TensorHeaders(
            (name, entry["dtype"], tuple(entry["shape"]))
            for name, entry in json.loads(text).items()
        )
        self.rows: list[dict[str, Any]] = json.loads((folder / "expected.json").read_text())["rows"]

    def differences(self, row: Mapping[str, Any]) -> list[Difference]:
        try:
            got = predicted(self.config, self.tensors, row["input"])
        except Exception as error:
            return [("exception", "none", repr(error))]
        return list(compare(row["expected"], got))


def predicted(
    config: dict[str, Any], tensors: TensorHeaders, given: Mapping[str, Any]
) -> MemoryPrediction | Refusal:
    """What a deploy of the model with these settings shows about its memory."""
    tensor, pipeline = (given.get(f"{name}_parallel_size") or 1 for name in ("tensor", "pipeline"))
    spec = ModelSpec.model_validate(
        {"name": "model", "source": "hf://conformance/model", "engine": {"args": _arguments(given)}}
    )
    resolved = ResolvedModel(
        source=spec.source,
        revision="0" * 40,
        path="/model",
        staged=True,
        files=(),
        config=config,
        config_origin="config.json",
        weights=WeightSummary(family="safetensors", bytes=0),
        headers=tensors,
    )
    profile = derive_profile(spec, resolved)
    memory, wanted = memory_model(spec, resolved, profile), memory_request(spec, profile)
    batched = memory.options.batched_tokens or BATCHED
    query = MemoryQuery(total=0, tokens=wanted.context, tensor=tensor, pipeline=pipeline)
    batch = Batch(tokens=batched, seqs=1)
    settings = EngineSetup(memory.config, memory.options, batch, query).settings()
    # A placement gives the pool that the requests need, and states the profile's context; a row
    # states the pool, and leaves the context to vLLM, which cuts that of longrope.
    answer = {"kv_pool_bytes": given.get("kv_pool_bytes", settings.kv_pool_bytes)}
    answer |= {"max_model_len": None} if given.get("max_model_len") is None else {}
    return predict_memory(memory.config, tensors, settings.model_copy(update=answer))


def _arguments(given: Mapping[str, Any]) -> list[str]:
    """The settings as a user writes them."""
    prefixes = given.get("enable_prefix_caching")
    switches = {
        "--enable-expert-parallel": bool(given.get("enable_expert_parallel")),
        "--disable-hybrid-kv-cache-manager": given.get("hybrid_kv_cache_manager") is False,
        "--enable-prefix-caching": prefixes is True,
        "--no-enable-prefix-caching": prefixes is False,
    }
    values = {f"--{name.replace('_', '-')}": given.get(name) for name in VALUES}
    return [
        *(name for name, is_on in switches.items() if is_on),
        *(f"{name}={value}" for name, value in values.items() if value is not None),
    ]


def models(folder: Path) -> Iterator[Model]:
    """The models below a folder, or the one that the folder itself holds."""
    for path in sorted(folder.glob("**/expected.json")):
        yield Model(path.parent)


def compare(expected: Mapping[str, Any], got: MemoryPrediction | Refusal) -> Iterator[Difference]:
    refused = bool(expected.get("rejected") or expected.get("error"))
    if isinstance(got, Refusal):
        if not refused or got.reason is not Reason.REJECTED:
            yield "refusal", expected.get("error"), f"{got.reason}: {got.note}"
        return
    if refused:
        yield "rejected", expected.get("error"), "a prediction"
        return
    for field in EXACT:
        if field in expected and getattr(got, field) != expected[field]:
            yield field, expected[field], getattr(got, field)
    yield from _close("weight_bytes_per_rank", expected, got, WEIGHT_TOLERANCE)
    yield from _close("concurrency", expected, got, CONCURRENCY_TOLERANCE)
    yield from _groups(expected, got)
    yield from _stages(expected, got)


def main(folder: Path) -> int:
    passed = failed = 0
    for model in models(folder):
        for row in model.rows:
            differences = model.differences(row)
            passed, failed = passed + (not differences), failed + bool(differences)
            for field, expected, got in differences:
                print(
                    f"{model.name} {_short(row['input'])} {field}: expected {expected}, got {got}"
                )
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def _unpacked(path: Path) -> bytes:
    with gzip.open(path) as file:
        return file.read()


def _close(
    field: str, expected: Mapping[str, Any], got: MemoryPrediction, tolerance: float
) -> Iterator[Difference]:
    want, have = expected.get(field), getattr(got, field)
    if want is None or have is None:
        if field in expected and want != have:
            yield field, want, have
    elif abs(have - want) > tolerance * abs(want):
        yield field, want, f"{have} ({(have - want) / want:+.4%})"


def _groups(expected: Mapping[str, Any], got: MemoryPrediction) -> Iterator[Difference]:
    if "groups" not in expected:
        return
    want = sorted(repr([group[f] for f in GROUP_FIELDS]) for group in expected["groups"])
    have = sorted(repr([getattr(group, f) for f in GROUP_FIELDS]) for group in got.groups)
    if want != have:
        yield "groups", want, have


def _stages(expected: Mapping[str, Any], got: MemoryPrediction) -> Iterator[Difference]:
    for stage, have in zip(expected.get("stages", ()), got.stages, strict=False):
        want = stage["weight_bytes"]
        if abs(have.weight_bytes - want) > WEIGHT_TOLERANCE * want:
            yield f"stage {have.pp_rank} weight_bytes", want, have.weight_bytes
        if "bytes_per_block" in stage and stage["bytes_per_block"] != have.bytes_per_block:
            yield (
                f"stage {have.pp_rank} bytes_per_block",
                stage["bytes_per_block"],
                have.bytes_per_block,
            )


def _short(row: Mapping[str, Any]) -> str:
    default = MemorySettings().model_dump()
    changed = {k: v for k, v in row.items() if default.get(k) != v}
    return ",".join(f"{k}={v}" for k, v in changed.items()) or "defaults"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
