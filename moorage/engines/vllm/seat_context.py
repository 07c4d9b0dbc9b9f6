"""From a seat to the input of the launch rules."""

from __future__ import annotations

from moorage.common.values import Origin
from moorage.engines.isolation import claimed_accelerators
from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.companions import adapters, draft_path
from moorage.engines.vllm.context import (
    BASELINE,
    MOORAGE,
    Executor,
    LaunchContext,
    LaunchPolicy,
    Length,
    Member,
    baseline_arguments,
)
from moorage.engines.vllm.engine_caches import cache_root
from moorage.engines.vllm.environment import is_310p
from moorage.engines.vllm.offload import ExtendedCache
from moorage.engines.vllm.ray_cluster import is_clustered
from moorage.models.profile import SPEECH_TO_TEXT, TEXT_TO_SPEECH
from moorage.spec import Mode, ModelSpec, Policy
from moorage.spec.arguments import EngineArguments


def context_of(request: LaunchRequest) -> LaunchContext:
    """The input of the launch rules for one seat."""
    spec, seat = request.spec, request.seat
    return LaunchContext(
        version=version_of(request),
        name=spec.name,
        model=request.engine_model_path,
        args=arguments_of(spec),
        user_variables=frozenset({*spec.engine.env, *spec.secrets}),
        accelerator_type=seat.accelerator_type,
        is_310p=is_310p(tuple(item.family for item in claimed_accelerators(request))),
        tensor=seat.tensor if seat.accelerators else 1,
        pipeline=seat.pipeline if seat.accelerators else 1,
        shared=(seat.tensor, seat.pipeline) if request.spans_hosts else None,
        executor=_executor(request),
        members=_members(request),
        position=seat.position,
        address=request.listen_address,
        interface=request.host.interface,
        ports=_ports(request),
        omni=_is_omni(request),
        length=_length(request),
        claimed=sum(seat.accelerator_bytes),
        ranks=len(seat.accelerators) or 1,
        speculative=spec.speculative,
        draft=draft_path(request),
        cache=extended_cache(spec),
        cache_root=cache_root(request, version_of(request)),
        adapters=adapters(request),
        updates=spec.lora_updates,
        shutdown_seconds=spec.stopping.grace_seconds,
        policy=policy_of(spec),
    )


def extended_cache(spec: ModelSpec) -> ExtendedCache | None:
    """The extended KV cache of a spec; None without one."""
    wanted = spec.extended_kv_cache
    if wanted is None:
        return None
    ram = int(wanted.ram) if wanted.ram else None
    return ExtendedCache(ram=ram, ratio=wanted.ratio, chunk=wanted.chunk)


def version_of(request: LaunchRequest) -> str:
    """Of what will run: the image's, else the installed program's; not one that is only of_spec."""
    if request.image is not None:
        return request.image.engine_version
    installed = next((item for item in request.host.programs if item.engine == "vllm"), None)
    return installed.version if installed and not request.in_container else ""


def policy_of(spec: ModelSpec) -> LaunchPolicy:
    """The defaults of a launch: the policy that places a model also starts it."""
    return BASELINE if spec.placement.policy == Policy.BASELINE else MOORAGE


def arguments_of(spec: ModelSpec) -> EngineArguments:
    """The user's arguments, as the rules of the policy read them."""
    args = spec.engine.arguments
    return baseline_arguments(args) if spec.placement.policy == Policy.BASELINE else args


def _is_omni(request: LaunchRequest) -> bool:
    """Whether images or speech are generated, by the model's profile or the user's `--omni`."""
    profile = request.profile
    makes = profile.mode == Mode.IMAGE_GENERATION or TEXT_TO_SPEECH in profile.categories
    return makes or bool(request.spec.engine.arguments.switch("--omni"))


def _executor(request: LaunchRequest) -> Executor | None:
    if not request.spans_hosts:
        return None
    return Executor.RAY if is_clustered(request) else Executor.NATIVE


def _members(request: LaunchRequest) -> tuple[Member, ...]:
    """On CPU every host is one rank."""
    return tuple(
        Member(address=peer.address, accelerators=len(peer.seat.accelerators) or 1)
        for peer in request.peers
    )


def _ports(request: LaunchRequest) -> tuple[int, ...]:
    """As the rules expect them: ports for connecting the hosts are the leader's.

    A kind of port that the layout does not use is not claimed.
    """
    own, leads = request.seat.links, request.peers[0].seat.links if request.peers else None
    if own is None or leads is None:
        return (request.seat.port,)
    if own.ray:
        return (request.seat.port, leads.rpc, own.own)
    return (request.seat.port, leads.rpc, leads.master, own.own, leads.joining)


def _length(request: LaunchRequest) -> Length | None:
    profile, tokens = request.profile, request.seat.tokens
    origin, reason = profile.context_origin, profile.context_reason
    baseline = request.spec.placement.policy == Policy.BASELINE
    if origin != Origin.USER and tokens and tokens < profile.context and not baseline:
        reason = f"of {profile.context} tokens, as many as the claimed memory holds"
        return Length(tokens=tokens, origin=Origin.DERIVED, reason=reason)
    if not baseline or origin == Origin.USER:
        return Length(tokens=profile.context, origin=origin, reason=reason)
    # GPUStack states no length but its cap, and none for speech-to-text.
    if origin == Origin.DEFAULT or SPEECH_TO_TEXT in profile.categories:
        return None
    return capped_length(profile.context, BASELINE)


def capped_length(longest: int | None, policy: LaunchPolicy) -> Length | None:
    """A model's context under a policy with a cap; None = the engine's own choice.

    Args:
        longest: Context that the model was made for; None = unknown.
        policy: The policy with the cap.
    """
    if not policy.longest or not longest or longest <= policy.longest:
        return None
    reason = f"of {longest} tokens, as many as the policy allows"
    return Length(tokens=policy.longest, origin=Origin.DERIVED, reason=reason)
