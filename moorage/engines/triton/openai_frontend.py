"""Triton's OpenAI frontend: a program in NVIDIA's images that serves `/v1` in Triton's place.

Source: `python/openai/openai_frontend/main.py` of the Triton server, and its guide for 25.02 to
26.07. It embeds the server, so only one port is open, which also serves metrics.
"""

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.common.versions import at_least
from moorage.engines.flags import Flag, derived_flag, spec_flag
from moorage.engines.request import LaunchRequest
from moorage.models.source import TEKKEN
from moorage.spec import Mode

PROGRAM = "/opt/tritonserver/python/openai/openai_frontend/main.py"
READY = "/health/ready"
SEPARATOR = ":"
"""Separator of model and adapter in the name that requests use."""

EMBEDS_SINCE = "26.01"
"""Oldest release known to have `/v1/embeddings`, by its guide."""


def frontend_command(request: LaunchRequest, repository: str) -> tuple[Flag, ...]:
    """The program on the model's repository, with the tokenizer for its chat template."""
    stated = request.spec.engine.arguments.value("--tokenizer")
    tokenizer = derived_flag(
        "the model's directory as the engine sees it", "--tokenizer", request.engine_model_path
    )
    if stated:
        tokenizer = spec_flag("engine.args: --tokenizer", "--tokenizer", stated)
    named = spec_flag("lora: requests name an adapter", "--lora-separator", SEPARATOR)
    return (
        spec_flag("engine.triton.openai", "python3", PROGRAM, f"--model-repository={repository}"),
        tokenizer,
        derived_flag("the backend that runs the model", "--backend", "vllm"),
        *([named] if request.model.companions and request.spec.lora else []),
    )


def frontend_address(request: LaunchRequest) -> tuple[Flag, ...]:
    """Address and port."""
    stated = Origin.DERIVED if request.spec.port == "auto" else Origin.USER
    port = ("--openai-port", str(request.seat.port))
    return (
        derived_flag("where it listens", "--host", request.listen_address),
        Flag(tokens=port, origin=stated, reason="a claimed port"),
    )


def frontend_refusal(request: LaunchRequest) -> Failure | None:
    """Why the frontend cannot serve the spec, by its features, release or the tokenizer."""
    settings, image = request.spec.engine.triton, request.image
    release = image.engine_version if image else ""
    for field in ("grpc", "health_check"):
        if getattr(settings, field):
            return Failure(
                Cause.BAD_SPEC,
                f"engine.triton.{field}: the OpenAI frontend has no such thing",
                suggestion=f"Leave out `openai` or `{field}`.",
            )
    if request.profile.mode == Mode.EMBEDDING and release and not at_least(release, EMBEDS_SINCE):
        return Failure(
            Cause.BAD_SPEC,
            f"mode: the OpenAI frontend of Triton {release} has no /v1/embeddings",
            suggestion=f"Take `engine.version` {EMBEDS_SINCE} or newer, or `engine.name: vllm`.",
        )
    return _tokenizer_refusal(request)


def _tokenizer_refusal(request: LaunchRequest) -> Failure | None:
    """Why the frontend cannot read the model's tokenizer.

    It asks transformers, and lets it run no code of the model (`engine/utils/tokenizer.py`, Triton
    server issue 7845).
    """
    if request.spec.engine.arguments.value("--tokenizer"):
        return None
    if request.model.has_own_tokenizer:
        why = "runs no code of the model, and its tokenizer is such code"
    elif request.model.has_only_tekken:
        why = f"does not read {TEKKEN}, the model's only tokenizer"
    else:
        return None
    return Failure(
        Cause.BAD_SPEC,
        f"engine.triton.openai: the OpenAI frontend {why}",
        suggestion="Add `--tokenizer` to `engine.args` with a directory that the engine sees and"
        " transformers reads, leave `openai` out, or take `engine.name: vllm`.",
    )
