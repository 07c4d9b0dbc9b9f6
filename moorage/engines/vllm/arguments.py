"""vLLM's derived arguments, in their order on the command line."""

from collections.abc import Iterator

from moorage.common.versions import at_least
from moorage.engines.base import Busy
from moorage.engines.command_line import batch_flags, length_flags, trust_flags
from moorage.engines.companions import adapters, draft_path
from moorage.engines.flags import Flag, default_flag, derived_flag
from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.companions import adapter_flags, speculative_flags
from moorage.engines.vllm.distributed import distributed_flags, parallel_flags, server_flags
from moorage.engines.vllm.engine_caches import offload_flags
from moorage.engines.vllm.environment import ascend_flags
from moorage.engines.vllm.launch_facts import arguments_of, is_omni, version_of
from moorage.images.image import COMPILER
from moorage.models.mode import POOLING
from moorage.models.profile import ModelProfile
from moorage.models.source import TEKKEN
from moorage.placement.placement import CPU
from moorage.spec import Mode


def gated_flags(request: LaunchRequest) -> Iterator[Flag]:
    """Flags of newer versions; none if the version is unknown."""
    version = version_of(request)
    if at_least(version, "0.16.0"):
        reason = "what scrapes the metrics would fill the log"
        yield default_flag(reason, "--disable-access-log-for-endpoints", "/metrics")
    if at_least(version, "0.9.0.1"):  # it had no effect before (vLLM PR 18149)
        reason = "answers say how much of the prompt came from the cache"
        yield default_flag(reason, "--enable-prompt-tokens-details")


OPTION = "--shutdown-timeout"
SINCE = "0.18.0"
"""First version with the option (vLLM PR 36666); without it SIGTERM aborts requests in flight."""

IN_FLIGHT = Busy(
    path="/metrics",
    running="vllm:num_requests_running",
    waiting="vllm:num_requests_waiting",
    generated="vllm:generation_tokens_total",
    progress=("vllm:generation_tokens_total",),
)
"""As of vLLM 0.32.

The metrics change with each engine step, so a request in its first step does not count yet;
`--shutdown-timeout` still lets it finish. The API key does not guard the metrics.
"""


def shutdown_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """vLLM's time-out after SIGTERM for requests in flight and its shutdown of 5 to 10 s."""
    if not at_least(version_of(request), SINCE):
        return ()
    reason = "`stopping.grace_seconds`: requests in flight go on after SIGTERM"
    return (derived_flag(reason, OPTION, str(request.spec.stopping.grace_seconds)),)


RUNNER_SINCE = "0.10.1"
"""First version with `--runner`, by that version's list of arguments."""

TASKS = {
    Mode.EMBEDDING: "embed",
    Mode.RERANKING: "score",
    Mode.CLASSIFICATION: "classify",
    Mode.TRANSCRIPTION: "transcription",
}
"""Values of `--task` for older versions."""


def claimed_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """Share of memory, scheduler step, mode, tokenizer and trust."""
    return (
        *_share(request),
        *batch_flags(request, "--max-num-batched-tokens", "--max-num-seqs"),
        *mode_flags(request.profile, version_of(request)),
        *_tokenizer_flags(request),
        *trust_flags(request.spec),
    )


def eager_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """`--enforce-eager` on CPU if the image lacks a compiler: vLLM would load and then exit."""
    on_cpu, image = request.seat.accelerator_type == CPU, request.image
    if not on_cpu or image is None or COMPILER not in image.lacks:
        return ()
    return (derived_flag("the image's label says: no C++ compiler", "--enforce-eager"),)


def mode_flags(profile: ModelProfile, version: str) -> tuple[Flag, ...]:
    """The flag for a mode that does not generate text; an empty version is assumed to be newer."""
    newer = not version or at_least(version, RUNNER_SINCE)
    if profile.mode not in (POOLING if newer else TASKS):
        return ()
    tokens = ("--runner", "pooling") if newer else ("--task", TASKS[profile.mode])
    return (Flag(tokens=tokens, origin=profile.mode_origin, reason=f"mode {profile.mode}"),)


def _tokenizer_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """The mode of Mistral's own tokenizer, if there is no other.

    vLLM 0.32 chooses it only next to Mistral's own weights (`tokenizers/registry.py`), which are
    not downloaded.
    """
    if not request.model.has_only_tekken or request.spec.engine.arguments.states("--tokenizer"):
        return ()
    return (derived_flag(f"{TEKKEN} is its only tokenizer", "--tokenizer-mode", "mistral"),)


def _share(request: LaunchRequest) -> tuple[Flag, ...]:
    seat = request.seat
    if not seat.accelerators:
        return ()
    reason = "the share of each accelerator that was claimed"
    return (derived_flag(reason, "--gpu-memory-utilization", f"{seat.utilization:g}"),)


def derived_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """Everything between the model and the user's own arguments.

    The user's arguments override: `without_user_flags` drops derived flags afterwards, so a rule
    need not check whether the user states its flag.

    Raises:
        Failure: `BAD_SPEC` when vLLM cannot start with the user's settings.
    """
    spec, omni = request.spec, is_omni(request)
    return (
        *([derived_flag("makes images", "--omni")] if omni else []),
        # Models that generate images or speech have no context length.
        *(() if omni else length_flags(request, "--max-model-len")),
        *parallel_flags(request),
        *speculative_flags(spec.speculative, draft_path(request)),
        *gated_flags(request),
        *shutdown_flags(request),
        *distributed_flags(request),
        *offload_flags(request),
        *ascend_flags(request),
        *adapter_flags(adapters(request), spec.name, arguments_of(spec), spec.lora_updates),
        *server_flags(request),
    )
