"""The command line of a seat: entrypoint, model, placeholders, and flags shared by engines."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moorage.common.units import human_bytes
from moorage.common.values import Origin
from moorage.engines.flags import Flag, derived_flag, size_flags, spec_flag, user_flag
from moorage.engines.request import LaunchRequest
from moorage.inventory.fleet_engines import EngineVersion
from moorage.models.profile import SPEECH_TO_TEXT
from moorage.spec import EngineName, ModelSpec, Policy
from moorage.spec.arguments import EngineArguments

PLACEHOLDER = re.compile(r"\{\{([A-Za-z_]\w*)\}\}")
OTHER_NAMES = {
    "worker_ip": "host_ip",
    "gpu_count": "accelerator_count",
    "gpu_ids": "accelerator_ids",
}
"""GPUStack's names of placeholders, so that its run commands work unchanged."""


def filled(
    words: Iterable[str], values: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Words with `{{name}}` filled in; each word stays one word.

    Args:
        values: Values of the placeholders.
        environment: The user's variables, for names that `values` lacks. A name in neither is
            kept, because it may be meant for the engine, as in a chat template.
    """
    known = {**environment, **values}
    known.update({other: values[name] for other, name in OTHER_NAMES.items() if name in values})
    return tuple(
        PLACEHOLDER.sub(lambda match: known.get(match[1], match[0]), word) for word in words
    )


def without_user_flags(
    flags: Iterable[Flag], stated: EngineArguments, aliases: Mapping[str, tuple[str, ...]]
) -> tuple[Flag, ...]:
    """The derived flags minus those that the user states, in any spelling or by an alias."""
    return tuple(
        flag
        for flag in flags
        if not stated.states(flag.tokens[0], *aliases.get(flag.tokens[0], ()))
    )


def port_flag(request: LaunchRequest) -> Flag:
    """The port on which the engine serves."""
    stated = Origin.DERIVED if request.spec.port == "auto" else Origin.USER
    tokens = ("--port", str(request.seat.port))
    return Flag(tokens=tokens, origin=stated, reason="the port that was claimed")


def named_server_flags(request: LaunchRequest) -> tuple[Flag, ...]:
    """Host, port and served name, as vLLM and SGLang name them."""
    inside = "inside the container; the host publishes it on its own address"
    listens = inside if request.publishes else "the host's `bind`"
    return (
        derived_flag(listens, "--host", request.listen_address),
        port_flag(request),
        spec_flag("the spec's name", "--served-model-name", request.spec.name),
    )


def length_flags(request: LaunchRequest, option: str) -> tuple[Flag, ...]:
    """The context that the placement chose, with the reason; none = the engine decides."""
    profile, tokens = request.profile, request.seat.tokens
    origin, whole = profile.context_origin, profile.context
    baseline = request.spec.placement.policy == Policy.BASELINE
    if origin == Origin.USER or not (baseline or (tokens and tokens < whole)):
        return (Flag(tokens=(option, str(whole)), origin=origin, reason=profile.context_reason),)
    # GPUStack states only its cap as length, and none for speech-to-text.
    unstated = origin == Origin.DEFAULT or SPEECH_TO_TEXT in profile.categories
    if baseline and (unstated or not 0 < tokens < whole):
        return ()
    why = "the policy allows" if baseline else "the claimed memory holds"
    reason = f"of {whole} tokens, as many as {why}"
    return (Flag(tokens=(option, str(tokens)), origin=Origin.DERIVED, reason=reason),)


def batch_flags(request: LaunchRequest, tokens: str, seqs: str) -> tuple[Flag, ...]:
    """The scheduler step assumed by the claim, stated because the engine's default may differ.

    `tokens` and `seqs` are the options for the tokens of a step and for concurrent requests.
    """
    need = request.seat.need
    if need is None or need.cache is None:
        return ()
    reason = f"as counted for the claim of {human_bytes(need.inside)}"
    return size_flags(reason, {tokens: need.batch.tokens, seqs: need.batch.seqs})


def trust_flags(spec: ModelSpec) -> tuple[Flag, ...]:
    """The flag that allows the model's own code to run."""
    flag = spec_flag("trust_remote_code", "--trust-remote-code")
    return (flag,) if spec.trust_remote_code else ()


def own_command(request: LaunchRequest) -> Flag:
    """The user's own command line, with placeholders filled in."""
    spec = request.spec.engine
    tokens = filled(spec.command or (), placeholders(request), spec.env)
    return user_flag("engine.command", tokens)


def placeholders(request: LaunchRequest) -> dict[str, str]:
    """Values that a command line can use in `{{...}}`."""
    seat = request.seat
    return {
        "model_path": request.engine_model_path,
        "model_name": request.spec.name,
        "host": request.listen_address,
        "host_ip": request.host.bind,
        "port": str(seat.port),
        "accelerator_count": str(len(seat.accelerators)),
        "accelerator_ids": ",".join(map(str, seat.accelerators)),
    }


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Words before the derived arguments: the entrypoint, then the model or the run command."""

    entrypoint: tuple[str, ...]
    start: tuple[str, ...]


def command_line(
    engine: CommandLine,
    chosen: EngineVersion | None,
    values: Mapping[str, str],
    environment: Mapping[str, str],
    entrypoint: tuple[str, ...] = (),
) -> CommandLine:
    """The words that start a version.

    A run command is split before its placeholders are filled in. A run command that begins with a
    program is a whole command line, without an entrypoint.

    Args:
        engine: The engine's own words, such as `vllm serve` and the model.
        chosen: The configuration of the version; None = not configured.
        entrypoint: The spec's entrypoint, which overrides the version's.
    """
    own = entrypoint or tuple(shlex.split(chosen.entrypoint if chosen else ""))
    own = filled(own, values, environment)
    if chosen is None or not chosen.run_command:
        return CommandLine(own or engine.entrypoint, engine.start)
    words = shlex.split(chosen.run_command)
    whole = not own and not words[0].startswith(("-", "{{model_path}}"))
    start = filled(words, values, environment)
    return CommandLine(() if whole else own or engine.entrypoint, start)


def configured_version(
    request: LaunchRequest, engine: EngineName
) -> tuple[str, EngineVersion] | None:
    """The fleet's configuration of the version that will run, with its name; None = not configured.

    Configuration applies to a version's image; an installed program ignores it. A custom engine
    always uses it.
    """
    spec = request.spec.engine
    versions = request.host.engine_versions(spec.custom or engine)
    if spec.custom:
        return versions.find_or_newest(spec.version or "")
    version = request.image.engine_version if request.image else ""
    return (version, versions.versions[version]) if version in versions.versions else None


def start_flags(request: LaunchRequest, engine: EngineName, own: Flag) -> tuple[Flag, ...]:
    """Entrypoint and model, as spec and fleet state them, in place of `own`.

    `own` is the engine's own start: its program and words, then the model.
    """
    spec, found = request.spec.engine, configured_version(request, engine)
    version = found[1] if found else None
    if version is None and spec.entrypoint is None:
        return (own,)
    line = command_line(
        CommandLine(own.tokens[:-1], own.tokens[-1:]),
        version,
        placeholders(request),
        spec.env,
        spec.entrypoint or (),
    )
    where = f"of {spec.custom or engine} {found[0]} in the fleet file" if found else ""
    entry, start = own.model_copy(update={"reason": "the engine's own program"}), own
    if spec.entrypoint:
        entry = _by_user("engine.entrypoint", written=True)
    elif version and version.entrypoint:
        entry = _by_user(f"entrypoint {where}")
    if version and version.run_command:
        start = _by_user(f"run_command {where}")
    flags = ((entry, line.entrypoint), (start, line.start))
    return tuple(flag.model_copy(update={"tokens": words}) for flag, words in flags if words)


def _by_user(reason: str, *, written: bool = False) -> Flag:
    return Flag(tokens=(), origin=Origin.USER, reason=reason, written=written)
