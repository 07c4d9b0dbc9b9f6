"""What vLLM refuses at its launch or warns of, in addition to the argument checks."""

from collections.abc import Iterator

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB, human_bytes
from moorage.engines.api_key import is_exposed, requires_key
from moorage.engines.request import LaunchRequest
from moorage.engines.vllm.causes import SOUND_PACKAGES
from moorage.engines.vllm.sleep import DEV_MODE, FIELD
from moorage.placement.placement import CPU
from moorage.spec import Mode

API_KEY = "VLLM_API_KEY"
CPU_CACHE = "VLLM_CPU_KVCACHE_SPACE"
"""Variable with the GiB of the KV cache on CPU."""

WRITER = "ForCausalLM"
"""Ending of the architectures that generate text."""


def dev_mode_refusal(request: LaunchRequest) -> Failure | None:
    """Refuse development paths beyond loopback, because the API key does not guard them.

    In development mode vLLM 0.32 serves `/sleep`, `/collective_rpc`, `/reset_prefix_cache`,
    `/server_info` and others, outside the prefixes that its key guards
    (`middleware/authenticate.py`).

    Returns:
        `BAD_SPEC`; None if no other machine reaches these paths.
    """
    if not (_in_dev_mode(request) and is_exposed(request)):
        return None
    field = FIELD if request.spec.sleep_level else DEV_MODE
    return Failure(
        Cause.BAD_SPEC,
        f"{field}: everybody who reaches {request.host.bind} on {request.host.name} could put"
        " the engine to sleep and call its workers; its API key does not guard these paths",
        suggestion=f"Leave {field} out, or use a host of the fleet whose `bind` is 127.0.0.1.",
    )


def exposure_warnings(request: LaunchRequest) -> Iterator[str]:
    """Warnings about development paths, and about a server without a key."""
    if _in_dev_mode(request):
        yield (
            f"{DEV_MODE}: everybody on {request.host.name} can put the engine to sleep and call its"
            " workers; its API key does not guard these paths"
        )
    if is_exposed(request) and not requires_key(request, API_KEY):
        yield (
            f"the engine answers everybody who reaches {request.host.bind} on"
            f" {request.host.name}; `secrets: {{{API_KEY}: NAME}}` makes it ask for a key"
        )


def sound_warnings(request: LaunchRequest) -> tuple[str, ...]:
    """A warning about sound packages, which official images omit because of their licences."""
    engine = request.spec.engine
    stated = engine.image or engine.packages or not request.in_container
    if stated or request.profile.mode != Mode.TRANSCRIPTION:
        return ()
    return (f"official images cannot read sound: {SOUND_PACKAGES} adds what they lack",)


RANKER = '{"architectures":["%s"],"classifier_from_token":["no","yes"]}'
"""Overrides for a language model that ranks by the probability of one of two words."""


def ranking_warnings(request: LaunchRequest) -> tuple[str, ...]:
    """A warning if a language model without a classifier is to rank.

    vLLM then compares embeddings (`entrypoints/pooling/scoring`), which no check of two scores
    tells from ranking. Original Qwen3 rerankers are such models.
    """
    profile, arguments = request.profile, request.spec.engine.arguments
    names = [name for name in profile.architectures if name.endswith(WRITER)]
    if profile.mode != Mode.RERANKING or not names or arguments.states("--convert"):
        return ()
    override = RANKER % names[0].replace(WRITER, "ForSequenceClassification")
    return (
        f"{names[0]} has no classifier, so vLLM ranks by the distance of embeddings. A reranker"
        f" such as the original Qwen3-Reranker needs `--hf-overrides {override}` in `engine.args`,"
        ' with `"is_original_qwen3_reranker":true` in it for that model',
    )


def cpu_cache_refusal(request: LaunchRequest) -> Failure | None:
    """Refuses a larger KV cache on CPU than was claimed, unless the spec states the RAM."""
    spec, seat = request.spec, request.seat
    stated = spec.engine.env.get(CPU_CACHE, "")
    unclaimed = seat.accelerator_type == CPU and spec.placement.ram == "auto"
    if not (unclaimed and stated.isdigit() and int(stated) * GIB > seat.cache_bytes):
        return None
    return Failure(
        Cause.BAD_SPEC,
        f"engine.env: {CPU_CACHE} {stated[:20]} is more than the {human_bytes(seat.cache_bytes)}"
        " that were claimed for the cache",
        suggestion="Set `concurrency` or `context` instead, or state all of its RAM in"
        " `placement.ram`.",
    )


def _in_dev_mode(request: LaunchRequest) -> bool:
    """Whether development mode is on: a whole number except 0 (`envs.py`) or unreadable value."""
    if request.spec.sleep_level or DEV_MODE in request.spec.secrets:
        return True
    written = request.spec.engine.env.get(DEV_MODE, "0")
    try:
        return int(written) != 0
    except ValueError:
        return True
