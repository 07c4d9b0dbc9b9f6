"""Arguments that hold the engine to what was claimed, and to what it is asked for."""

from __future__ import annotations

from moorage.common.units import human_bytes
from moorage.engines.launch import Flag
from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.requested import version_of
from moorage.engines.vllm.rule import derived, wanted
from moorage.engines.vllm.version import at_least
from moorage.models.profile import ModelProfile
from moorage.spec import Mode, ModelSpec

RUNNER_SINCE = "0.10.1"
"""First version with `--runner`, by its own list of arguments."""

TASKS = {Mode.EMBEDDING: "embed", Mode.RERANKING: "score", Mode.CLASSIFICATION: "classify"}
"""What older versions are told with `--task`."""


def claimed_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """Share of the memory, batch, mode and trust."""
    return (
        *_share(request),
        *_batch(request),
        *mode_flags(request.profile, version_of(request)),
        *trust_flags(request.spec),
    )


def mode_flags(profile: ModelProfile, version: str) -> tuple[Flag, ...]:
    """What a model is served for, where that is not text.

    Args:
        profile: The model.
        version: Version of the engine; empty = unknown, and taken to be a newer one.
    """
    if profile.mode not in TASKS:
        return ()
    newer = not version or at_least(version, RUNNER_SINCE)
    tokens = ("--runner", "pooling") if newer else ("--task", TASKS[profile.mode])
    return (Flag(tokens=tokens, origin=profile.mode_origin, reason=f"mode {profile.mode}"),)


def trust_flags(spec: ModelSpec) -> tuple[Flag, ...]:
    """Whether the model's own code may run."""
    return (wanted("trust_remote_code", "--trust-remote-code"),) if spec.trust_remote_code else ()


def _share(request: LaunchRequest) -> tuple[Flag, ...]:
    seat = request.seat
    if not seat.accelerators:
        return ()
    reason = "the share of each accelerator that was claimed"
    return (derived(reason, "--gpu-memory-utilization", f"{seat.utilization:g}"),)


def _batch(request: LaunchRequest) -> tuple[Flag, ...]:
    """The step that the claim was worked out for; without it another version may take another."""
    need = request.seat.need
    if need is None or need.cache is None:
        return ()
    reason = f"as counted for the claim of {human_bytes(need.inside)}"
    sizes = {
        "--max-num-batched-tokens": need.batch.tokens,
        "--max-num-seqs": need.batch.seqs,
    }
    return tuple(derived(reason, name, str(size)) for name, size in sizes.items())
