"""vLLM as an application of Ray Serve LLM: the arguments of a launch as `engine_kwargs`.

Read from `ray.llm` of Ray 2.60: `engine_kwargs` takes the fields of vLLM's engine arguments;
model and name are `model_loading_config`, and Ray names executor, host and port itself.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin
from moorage.engines.application import ApplicationParts, ApplicationRequest
from moorage.engines.command_line import without_user_flags
from moorage.engines.flags import Flag, derived_flag, variable
from moorage.engines.schema.argument import Argument, Kind, Schema
from moorage.engines.schema.convert import CONVERSIONS, NOTHING, NotAccepted
from moorage.engines.schema.reading import rewritten
from moorage.engines.vllm.arguments import length_flags, mode_flags, trust_flags
from moorage.engines.vllm.companions import speculative_flags
from moorage.engines.vllm.context import LaunchContext, Length
from moorage.engines.vllm.distributed import PIPELINE, TENSOR
from moorage.engines.vllm.options import ALIASES
from moorage.placement.placement import CPU
from moorage.spec.tokenize import is_option

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
        flags.append(
            Flag(tokens=args.words, origin=Origin.USER, reason="engine.args", written=True)
        )
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
    length = Length(
        tokens=profile.context, origin=profile.context_origin, reason=profile.context_reason
    )
    context = LaunchContext(
        name=spec.name,
        model=request.source,
        accelerator_type=seat.accelerator_type,
        address="",
        ports=(),
        length=length,
    )
    sizes = {TENSOR: seat.tensor, PIPELINE: seat.pipeline}
    why = f"{seat.tensor * seat.pipeline} accelerators for each replica"
    return (
        *_revision(request),
        *length_flags(context),
        *(derived_flag(why, name, str(size)) for name, size in sizes.items() if size > 1),
        *speculative_flags(spec.speculative),
        *mode_flags(profile, request.arguments.version),
        *trust_flags(spec),
    )


def _revision(request: ApplicationRequest) -> tuple[Flag, ...]:
    """The nodes download the model themselves; they must get the very commit that was resolved."""
    if not request.model.source.startswith("hf://"):
        return ()
    return (derived_flag("the commit that was resolved", "--revision", request.model.revision),)


def _deployment(request: ApplicationRequest) -> dict[str, Any]:
    """The number of replicas, and the time that an ending one has for requests in flight."""
    scaling, stopping = request.settings.autoscaling, request.spec.stopping
    number: dict[str, Any] = {"num_replicas": request.spec.replicas}
    if scaling:
        number = {"autoscaling_config": scaling.model_dump(exclude_none=True)}
    return {**number, "graceful_shutdown_timeout_s": stopping.drain_seconds}


def keywords(words: Sequence[str], schema: Schema) -> dict[str, Any]:
    """What an engine's own parser would make of words, by the name of the field.

    Args:
        words: Of a command line; the last writing of an option counts.
        schema: What the version knows.

    Raises:
        Failure: `BAD_SPEC` for an option that is unknown or cut short, or a value that is none.
    """
    found: dict[str, Any] = {}
    for option, values in _options(_rewritten(words, schema)):
        argument = schema.options.get(option)
        if argument is None:
            raise _bad(option, f"vLLM {schema.version} does not know it; write options in full")
        try:
            found[_field(argument)] = _value(argument, option, values)
        except NotAccepted as error:
            raise _bad(option, str(error)) from None
    return found


def _rewritten(words: Sequence[str], schema: Schema) -> list[str]:
    try:
        return rewritten(words, schema)
    except NotAccepted as error:
        raise _bad(str(error), "its value is missing") from None


def _options(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each option with its values."""
    option, values = "", list[str]()
    for word in words:
        if not is_option(word):
            values.append(word)
            continue
        if option:
            yield option, values
        option, equals, value = word.partition("=")
        values = [value] if equals else []
    if option:
        yield option, values


def _field(argument: Argument) -> str:
    """vLLM's fields are named as the first of their long options."""
    name = next(name for name in argument.options if name.startswith("--"))
    return name.removeprefix("--").replace("-", "_")


def _value(argument: Argument, option: str, values: Sequence[str]) -> Any:
    if argument.kind == Kind.SWITCH:
        return not (option.startswith("--no-") and option != argument.name)
    if not values and argument.values != "?":
        raise NotAccepted("its value is missing")
    read = [_one(argument, value) for value in values]
    return read if argument.values in ("+", "*") else next(iter(read), None)


def _one(argument: Argument, word: str) -> Any:
    return None if argument.none and word in NOTHING else CONVERSIONS[argument.kind](word)


def _bad(option: str, why: str) -> Failure:
    return Failure(Cause.BAD_SPEC, f"engine.args: {option}: {why}")
