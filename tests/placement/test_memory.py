from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB
from moorage.memory.calibration import Measurement, calibration_key
from moorage.memory.demand import memory_model
from moorage.memory.estimates import CONTEXT
from moorage.memory.need import MemoryQuery, Need
from moorage.models.profile import derive_profile
from moorage.placement.memory import CalibratedMemory, estimated_memory, exact_or_estimated
from moorage.readiness.engine_facts import Measured
from moorage.spec import ModelSpec
from tests.builders import NOON, a_model, a_profile, a_spec
from tests.memory.models import known

TOTAL = 80 * GIB


def estimated(tokens: int = 8192, concurrency: int = 1, tensor: int = 1, **profile: Any) -> Need:
    query = MemoryQuery(total=TOTAL, tensor=tensor, tokens=tokens, concurrency=concurrency)
    need = estimated_memory(a_profile(**profile), "no headers", 0, query)
    assert isinstance(need, Need)
    return need


def size(need: Need, name: str) -> int:
    term = need.term(name)
    return term.bytes if term else 0


def test_weights_are_the_files_over_the_ranks_and_nothing_is_called_exact() -> None:
    need = estimated(tensor=2)
    assert size(need, "weights") == 4 * GIB
    assert not any(term.exact for term in need.terms)
    assert "no headers" in need.terms[0].reason


@pytest.mark.parametrize(
    ("changes", "gib"),
    [
        ({}, 1),
        ({"tokens": 16384}, 2),
        ({"concurrency": 4}, 4),
        ({"tensor": 2}, 0.5),
        ({"tensor": 8, "kv_heads": 2}, 0.125),
    ],
    ids=str,
)
def test_the_cache_is_split_by_its_heads_and_no_further(
    changes: dict[str, Any], gib: float
) -> None:
    assert size(estimated(**changes), "kv_cache") == gib * GIB


def test_where_the_cache_is_unknown_the_accelerator_is_taken_nearly_whole() -> None:
    need = estimated(kv_heads=None)
    assert "unknown" in next(t.reason for t in need.terms if t.name == "kv_cache")
    assert 0.85 < need.utilization(TOTAL) < 0.95


QUERY = MemoryQuery(total=TOTAL, tokens=8192)


def test_what_the_rules_do_not_cover_is_estimated_and_says_so() -> None:
    unknown = Refusal(Reason.UNKNOWN, "no rules for Foo")
    need = exact_or_estimated(lambda _: unknown, a_profile(), 0, QUERY)
    assert isinstance(need, Need)
    assert "no rules for Foo" in need.terms[0].reason


def test_what_the_engine_would_refuse_stays_refused() -> None:
    rejected = Refusal(Reason.REJECTED, "heads do not divide")
    assert exact_or_estimated(lambda _: rejected, a_profile(), 0, QUERY) is rejected


def test_what_is_known_is_passed_on_as_it_is() -> None:
    need = estimated()
    assert exact_or_estimated(lambda _: need, a_profile(), 0, QUERY) is need


def test_adapters_and_draft_models_count_by_their_files_on_each_rank() -> None:
    query = MemoryQuery(total=TOTAL, tensor=2, tokens=8192)
    need = estimated_memory(a_profile(), "no headers", GIB, query)
    assert isinstance(need, Need)
    assert size(need, "weights") == 4 * GIB + GIB


H100 = "NVIDIA H100 80GB HBM3"
MEASURED = Measured(activation_bytes=GIB // 2, graph_bytes=GIB)
STEP = ("--max-num-batched-tokens", "8192", "--max-num-seqs", "1024")


def measurement(*arguments: str, device: str = H100, release: str = "a.v1") -> Measurement:
    _, profile, _ = served()
    key = calibration_key(profile, "vllm", "0.32.0", "cuda", device, (*STEP, *arguments))
    return Measurement(workload="w", key=key, measured=MEASURED, release=release, measured_at=NOON)


def served(*arguments: str) -> tuple[ModelSpec, Any, Any]:
    config, headers = known("llama-3.1-8b")
    spec = a_spec(engine={"args": arguments})
    model = a_model(config=config, headers=headers)
    profile = derive_profile(spec, model)
    return spec, profile, memory_model(spec, model, profile)


def need(*measured: Measurement, arguments: tuple[str, ...] = (), tensor: int = 1) -> Need:
    _, profile, exact = served(*arguments)
    memory = CalibratedMemory(exact.need, profile, "vllm", "0.32.0", arguments, measured)
    found = memory.need(
        MemoryQuery(
            total=TOTAL, device_name=H100, tensor=tensor, pipeline=1, tokens=8192, concurrency=1
        )
    )
    assert isinstance(found, Need)
    return found


def test_what_was_measured_replaces_what_was_estimated_and_says_by_whom() -> None:
    plain, corrected = need(), need(measurement())
    assert size(corrected, "activation") == GIB // 2 != size(plain, "activation")
    assert size(corrected, "cuda_graphs") == GIB != size(plain, "cuda_graphs")
    assert size(corrected, "weights") == size(plain, "weights")
    reason = next(term.reason for term in corrected.terms if term.name == "activation")
    assert "as a.v1 measured" in reason


@pytest.mark.parametrize(
    ("measured", "arguments", "tensor"),
    [
        (measurement(device="NVIDIA L4"), (), 1),
        (measurement(), ("--enforce-eager",), 1),
        (measurement(), ("--max-num-seqs", "64"), 1),
        (measurement(), (), 2),
    ],
    ids=["another device", "without graphs", "another batch", "other ranks"],
)
def test_other_settings_are_not_corrected(
    measured: Measurement, arguments: tuple[str, ...], tensor: int
) -> None:
    query: dict[str, Any] = {"arguments": arguments, "tensor": tensor}
    assert need(measured, **query) == need(**query)


def test_the_users_own_batch_is_part_of_the_settings() -> None:
    own = ("--max-num-seqs", "64")
    found = need(measurement(*own), arguments=own)
    assert size(found, "activation") == GIB // 2


def test_the_first_of_several_measurements_counts() -> None:
    newest = measurement(release="a.v2").model_copy(
        update={"measured": Measured(activation_bytes=2 * GIB)}
    )
    assert size(need(newest, measurement()), "activation") == 2 * GIB


@pytest.mark.parametrize(
    ("versions", "gib"), [((), 0), (("0.29.0",), 0), (("0.26.0",), 1), (("",), 1)]
)
def test_an_estimate_by_files_has_graphs_on_top_where_they_may_be(
    versions: tuple[str, ...], gib: int
) -> None:
    query = replace(QUERY, versions=versions)
    found = estimated_memory(a_profile(), "no headers", 0, query)
    assert isinstance(found, Need)
    assert size(found, "cuda_graphs") == gib * GIB
    assert found.outside == gib * GIB + CONTEXT
