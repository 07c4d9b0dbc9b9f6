from __future__ import annotations

from typing import Any

import pytest

from moorage.common.units import GIB
from moorage.memory.calibration import Measurement
from moorage.memory.calibration_key import calibration_key
from moorage.memory.demand import memory_model
from moorage.memory.need import Need
from moorage.models.config import derive_profile
from moorage.placement.memory_models import CalibratedMemory
from moorage.readiness.measured import Measured
from moorage.spec import ModelSpec
from tests.builders import NOON, a_model, a_spec
from tests.memory.models import known

H100, TOTAL = "NVIDIA H100 80GB HBM3", 80 * GIB
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
    memory = CalibratedMemory(exact, profile, "vllm", "0.32.0", arguments, measured)
    found = memory.need(
        total=TOTAL, device_name=H100, tensor=tensor, pipeline=1, tokens=8192, concurrency=1
    )
    assert isinstance(found, Need)
    return found


def size(found: Need, name: str) -> int:
    term = found.term(name)
    assert term is not None
    return term.bytes


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
    asked: dict[str, Any] = {"arguments": arguments, "tensor": tensor}
    assert need(measured, **asked) == need(**asked)


def test_the_users_own_batch_is_part_of_the_settings() -> None:
    own = ("--max-num-seqs", "64")
    found = need(measurement(*own), arguments=own)
    assert size(found, "activation") == GIB // 2


def test_the_first_of_several_measurements_counts() -> None:
    newest = measurement(release="a.v2").model_copy(
        update={"measured": Measured(activation_bytes=2 * GIB)}
    )
    assert size(need(newest, measurement()), "activation") == 2 * GIB
