"""Which settings of a start decide about its memory: the key under which measurements are kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from moorage.launch import ContainerSpec, LaunchPlan
from moorage.models.memory.calibration import CalibrationKey
from moorage.models.profile import ModelProfile
from moorage.placement.snapshot import HostSnapshot

TENSOR = ("--tensor-parallel-size", "-tp")
PIPELINE = ("--pipeline-parallel-size", "-pp")
BATCHED = ("--max-num-batched-tokens",)
SEQUENCES = ("--max-num-seqs",)
EAGER = "--enforce-eager"

SUFFIXES = {
    "k": 10**3,
    "K": 2**10,
    "m": 10**6,
    "M": 2**20,
    "g": 10**9,
    "G": 2**30,
}
"""As vLLM reads `8k` and `8K`. Source: `utils/argparse_utils.py:human_readable_int`."""


def calibration_key(
    profile: ModelProfile,
    engine: str,
    version: str,
    accelerator_type: str,
    accelerator: str,
    arguments: Sequence[str],
) -> CalibrationKey:
    """The key of a start.

    Args:
        profile: The model.
        engine: Name of the engine.
        version: Its version.
        accelerator_type: As of the seat.
        accelerator: Name of the device; empty on CPU.
        arguments: The engine's command line; what it leaves out is the engine's default, and that
            follows from the other parts of the key.
    """
    return CalibrationKey(
        architecture=profile.architectures[0] if profile.architectures else profile.model_type,
        shape=_shape(profile),
        engine=engine,
        engine_version=version,
        accelerator_type=accelerator_type,
        accelerator=accelerator,
        tensor_parallel_size=_number(arguments, TENSOR) or 1,
        pipeline_parallel_size=_number(arguments, PIPELINE) or 1,
        max_num_batched_tokens=_number(arguments, BATCHED),
        max_num_seqs=_number(arguments, SEQUENCES),
        eager=any(_spelled(word) == EAGER for word in arguments),
    )


def key_of_container(
    profile: ModelProfile, plan: LaunchPlan, container: ContainerSpec, host: HostSnapshot
) -> CalibrationKey:
    """The key of one container of a plan, on the host that it runs on."""
    names = [
        item.name
        for item in host.accelerators
        if (item.uuid or str(item.index)) in container.devices
    ]
    return calibration_key(
        profile,
        plan.engine,
        plan.engine_version,
        container.accelerator_type,
        names[0] if names else "",
        container.argv,
    )


def _shape(profile: ModelProfile) -> str:
    """Two models of one class share nothing when they differ in size, weights or mode."""
    sizes = (profile.layers, profile.hidden_size, profile.attention_heads, profile.vocab_size)
    stored = profile.quantization or profile.dtype or "unknown"
    return f"{'x'.join(str(size or 0) for size in sizes)} {stored} {profile.mode}"


def _number(arguments: Sequence[str], names: tuple[str, ...]) -> int:
    """The value of an option that is a count; 0 when it is not given, or not a number."""
    return _count(_value(arguments, names))


def _value(arguments: Sequence[str], names: tuple[str, ...]) -> str:
    """What the last one of an option says, written as `--a b` or `--a=b`."""
    found = ""
    for word, following in pairwise((*arguments, "")):
        if _spelled(word) in names:
            found = word.partition("=")[2] if "=" in word else following
    return found


def _spelled(word: str) -> str:
    return word.partition("=")[0].replace("_", "-")


def _count(text: str) -> int:
    number, factor = (text[:-1], SUFFIXES[text[-1]]) if text[-1:] in SUFFIXES else (text, 1)
    return int(number) * factor if number.isdecimal() else 0
