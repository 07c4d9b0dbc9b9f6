"""Facts that vLLM's launch rules read from a request, under the policy that placed the model."""

from collections.abc import Sequence

from moorage.engines.request import LaunchRequest
from moorage.spec import EngineName, Mode, ModelSpec, Policy
from moorage.spec.arguments import EngineArguments

FOUND_WITH_UNDERSCORE = ("--lora_modules", "--max_lora_rank")
"""Options that GPUStack recognises although they are written with `_`."""


def by_baseline(spec: ModelSpec) -> bool:
    """Whether the launch follows GPUStack's defaults, as policy `baseline` placed the model."""
    return spec.placement.policy == Policy.BASELINE


def arguments_of(spec: ModelSpec) -> EngineArguments:
    """The user's arguments, as the rules of the policy read them.

    GPUStack uses the first of repeated options, vLLM the last, hence the reversed order. GPUStack
    recognises only two options written with `_`. Only its rules ignore the others: derived flags
    never repeat an option of the user, in any spelling.
    """
    args = spec.engine.arguments
    if not by_baseline(spec):
        return args
    read = (
        option
        for option in reversed(args.options)
        if "_" not in option.written or option.written in FOUND_WITH_UNDERSCORE
    )
    return EngineArguments(options=tuple(read))


def version_of(request: LaunchRequest) -> str:
    """The version that will run, from the image or the installed program; empty = unknown.

    A version stated only in the spec does not count. If vLLM runs inside another engine, its
    version is that of the arguments.
    """
    if request.arguments:
        return request.arguments.version
    if request.image is not None:
        return request.image.engine_version
    installed = None if request.in_container else request.host.program(EngineName.VLLM)
    return installed.version if installed else ""


def is_omni(request: LaunchRequest) -> bool:
    """Whether vllm-omni serves the model: images by its mode, all else by the user's `--omni`."""
    makes_images = request.profile.mode == Mode.IMAGE_GENERATION
    return makes_images or bool(request.spec.engine.arguments.switch("--omni"))


def is_clustered(request: LaunchRequest) -> bool:
    """Whether Ray connects the hosts of the replica."""
    links = request.seat.links
    return request.spans_hosts and links is not None and links.ray is not None


def ranks_by_host(request: LaunchRequest) -> list[int]:
    """Ranks on each host of the replica, the leader's first; on CPU one per host."""
    return [len(peer.seat.accelerators) or 1 for peer in request.peers]


def is_310p(families: Sequence[str]) -> bool:
    """Whether all accelerators are Ascend 310P, by the names of their chips."""
    return bool(families) and all(name.lower().startswith("ascend310p") for name in families)
