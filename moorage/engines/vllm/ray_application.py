"""vLLM as an application of Ray Serve LLM: the arguments of a launch as `engine_kwargs`.

Source: `ray.llm` of Ray 2.60. `engine_kwargs` takes the fields of vLLM's engine arguments; model
and name are in `model_loading_config`, and Ray sets executor, host and port itself.
"""

from typing import Any

from moorage.engines.application import ApplicationParts, ApplicationRequest
from moorage.engines.command_line import trust_flags, without_user_flags
from moorage.engines.flags import Flag, derived_flag, user_flag, variable
from moorage.engines.schema.keywords import keywords
from moorage.engines.vllm.arguments import mode_flags
from moorage.engines.vllm.companions import speculative_flags
from moorage.engines.vllm.distributed import PIPELINE, TENSOR
from moorage.engines.vllm.options import ALIASES
from moorage.placement.placement import CPU

BUILDER = "ray.serve.llm:build_openai_app"
VARIABLES = (variable("VLLM_NO_USAGE_STATS", "1", "a server does not report home"),)


def vllm_application(request: ApplicationRequest) -> ApplicationParts:
    """The application that Ray Serve LLM builds.

    Raises:
        Failure: `BAD_SPEC` when the user's arguments cannot be read.
    """
    args = request.spec.engine.arguments
    flags = list(without_user_flags(_derived(request), args, ALIASES))
    if args.words:
        flags.append(user_flag("engine.args", args.words))
    tokens = [token for flag in flags for token in flag.tokens]
    config: dict[str, Any] = {
        "model_loading_config": {"model_id": request.spec.name, "model_source": request.source},
        "engine_kwargs": keywords(tokens, request.arguments),
        "deployment_config": _deployment(request),
    }
    if request.seat.accelerator_type == CPU:
        config["accelerator_config"] = {"kind": "cpu"}
    if kind := request.settings.accelerator_type:
        config["accelerator_type"] = kind
    return ApplicationParts(
        import_path=BUILDER,
        args={"llm_configs": [{**config, **request.settings.args}]},
        flags=tuple(flags),
        variables=VARIABLES,
    )


def _derived(request: ApplicationRequest) -> tuple[Flag, ...]:
    spec, profile, seat = request.spec, request.profile, request.seat
    hub, revision = request.model.source.startswith("hf://"), request.model.revision
    length = Flag(
        tokens=("--max-model-len", str(profile.context)),
        origin=profile.context_origin,
        reason=profile.context_reason,
    )
    sizes = {TENSOR: seat.tensor, PIPELINE: seat.pipeline}
    why = f"{seat.tensor * seat.pipeline} accelerators for each replica"
    return (
        # The nodes download the model themselves.
        *([derived_flag("the commit that was resolved", "--revision", revision)] if hub else []),
        length,
        *(derived_flag(why, name, str(size)) for name, size in sizes.items() if size > 1),
        *speculative_flags(spec.speculative),
        *mode_flags(profile, request.arguments.version),
        *trust_flags(spec),
    )


def _deployment(request: ApplicationRequest) -> dict[str, Any]:
    """The number of replicas, and the time that a stopping replica has for requests in flight."""
    scaling, stopping = request.settings.autoscaling, request.spec.stopping
    number: dict[str, Any] = {"num_replicas": request.spec.replicas}
    if scaling:
        number = {"autoscaling_config": scaling.model_dump(exclude_none=True)}
    return {**number, "graceful_shutdown_timeout_s": stopping.drain_seconds}
