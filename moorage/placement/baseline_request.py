"""A spec and a profile in the words of the policy `baseline`."""

from __future__ import annotations

from moorage.common.failures import Cause, Failure
from moorage.models.profile import ModelProfile
from moorage.placement.baseline import BaselineRequest, CacheInRam, ManualAccelerator
from moorage.placement.baseline import Strategy as BaselineStrategy
from moorage.placement.baseline.parallelism import FLAGS
from moorage.placement.baseline.parameters import Parameters
from moorage.placement.baseline.refusal import RefusedRequest
from moorage.placement.baseline.terms import terms
from moorage.placement.engine import EngineTraits
from moorage.spec import ExtendedCacheSpec, ModelSpec, Policy


def by_baseline_rules(spec: ModelSpec) -> bool:
    """Whether the peer's rules decide; they know accelerators only."""
    return spec.placement.policy == Policy.BASELINE and spec.placement.accelerators != 0


def baseline_request(
    spec: ModelSpec, profile: ModelProfile, engine: EngineTraits, adapter_bytes: int = 0
) -> BaselineRequest:
    """What the rules look at.

    Args:
        spec: What the user wrote.
        profile: The model.
        engine: The engine that will serve it.
        adapter_bytes: Bytes of its LoRA adapters.
    """
    place, listed = spec.placement, spec.placement.accelerators
    named = [one.rsplit(":", 2) for one in listed] if isinstance(listed, tuple) else []
    return BaselineRequest(
        weight_bytes=profile.weight_bytes,
        lora_bytes=adapter_bytes,
        claim_override=None if spec.memory.claim is None else int(spec.memory.claim),
        categories=profile.categories,
        architectures=profile.architectures,
        attention_heads=profile.attention_heads,
        vision_heads=profile.vision_heads,
        vocabulary=profile.vocab_size,
        parameters=_parameters(spec),
        engine_version=spec.engine.version,
        manual=tuple(ManualAccelerator(host, kind, int(index)) for host, kind, index in named),
        accelerators_per_replica=place.accelerators_per_replica,
        replicas=spec.replicas,
        distributed_allowed=place.across_hosts and engine.spans_hosts,
        cache_in_ram=_cache(spec.extended_kv_cache),
        strategy=BaselineStrategy(place.strategy.value),
    )


def require_consistent(request: BaselineRequest) -> None:
    """Refuse a request that contradicts itself or the model, before any host is looked at.

    Raises:
        Failure: `BAD_SPEC`; `named` has the class of the contradiction.
    """
    try:
        terms(request)
    except RefusedRequest as refused:
        raise Failure(
            Cause.BAD_SPEC,
            f"engine.args: {refused.refusal.meaning}",
            suggestion="Leave the parallel sizes out: `policy: baseline` derives them.",
            named={"class": refused.refusal.error},
        ) from refused


def _parameters(spec: ModelSpec) -> tuple[str, ...]:
    """The user's arguments; a wished number of accelerators becomes a tensor-parallel size."""
    written, wanted = spec.engine.args, spec.placement.accelerators
    if not isinstance(wanted, int) or _are_sized(written):
        return written
    return (*written, f"--tensor-parallel-size={wanted}")


def _are_sized(written: tuple[str, ...]) -> bool:
    try:
        parameters = Parameters(written)
    except ValueError:  # `require_consistent` says so
        return True
    return any(parameters.value(*names) is not None for names in FLAGS.values())


def _cache(wish: ExtendedCacheSpec | None) -> CacheInRam | None:
    if wish is None:
        return None
    return CacheInRam(size=int(wish.ram) if wish.ram else None, ratio=wish.ratio)
