"""Finds the violations of a policy in a request."""

from collections.abc import Iterable, Iterator, Sequence

from moorage.engines.vllm.companions import UPDATING
from moorage.engines.vllm.sleep import DEV_MODE
from moorage.inventory.fleet import Fleet, Host
from moorage.policy.names import has_image, has_name, has_variable, is_below, refused_words
from moorage.policy.request import Channel, Folders, Request, Usage, Violation, excerpt, usage_of
from moorage.policy.rules import EffectivePolicy, Rules
from moorage.spec import EngineSpec, ModelSpec, RuntimeName
from moorage.spec.image_reference import parse_reference

Finding = tuple[str, str, object, object]
"""Rule, field, the value found, the allowed values."""


def violations(policy: EffectivePolicy, request: Request) -> tuple[Violation, ...]:
    """All violations of the policy in a request; empty = the request is allowed."""
    channel = request.submission.channel
    rules, spec = policy.policy.rules(channel), request.spec
    found = (
        *_of_execution(rules, spec.engine),
        *_of_image(rules, spec.engine, request.fleet),
        *_of_variables(rules, request),
        *_of_container(rules, spec.engine),
        *_of_code_and_files(rules, request),
        *_of_place(rules, request),
        *size_findings(rules, usage_of(spec), request.others),
    )
    return as_violations(policy, channel, found)


def parameter_violations(
    policy: EffectivePolicy, channel: Channel, **refused: object
) -> tuple[Violation, ...]:
    """Violations by refused parameters of a run; `refused` holds their values by rule."""
    rules = policy.policy.rules(channel)
    found = (
        (rule, PARAMETERS[rule], value, getattr(rules, rule)) for rule, value in refused.items()
    )
    return as_violations(policy, channel, found)


PARAMETERS = {"own_fleet": "fleet", "spec_folders": "files"}
"""The flow parameter that each rule restricts."""


def allowed_hosts(rules: Rules, fleet: Fleet) -> Fleet:
    """A fleet without the hosts that the rules exclude; possibly without any host."""
    hosts = tuple(host for host in fleet.hosts if _has_host(rules, host))
    return fleet if hosts == fleet.hosts else fleet.model_copy(update={"hosts": hosts})


def as_violations(
    policy: EffectivePolicy, channel: Channel, found: Iterable[Finding]
) -> tuple[Violation, ...]:
    """Findings as violations, with the names of their rules and the policy's file."""
    return tuple(
        Violation(
            rule=f"{channel}.{rule}",
            field=field,
            found=excerpt(value),
            allowed=_in_words(allowed),
            file=policy.source,
        )
        for rule, field, value, allowed in found
    )


def _of_execution(rules: Rules, engine: EngineSpec) -> Iterator[Finding]:
    if not rules.commands:
        brought = {"engine.command": engine.command, "engine.entrypoint": engine.entrypoint}
        if application := engine.application:
            for name in ("import_path", "args", "deployments", "runtime_env"):
                brought[f"engine.application.{name}"] = getattr(application, name)
        for field, value in brought.items():
            if value:
                yield "commands", field, value, False
    if engine.packages and not rules.packages:
        yield "packages", "engine.packages", engine.packages, False
    for word in refused_words(rules.args, engine.args):
        yield "args", "engine.args", word, rules.args
    for name in ("vllm", "llama_cpp"):
        for word in refused_words(rules.args, getattr(engine, name).words):
            # A typed setting has the name of its option.
            field = word.removeprefix("--").replace("-", "_")
            yield "args", f"engine.{name}.{field}", word, rules.args
    triton = engine.triton
    opened = {"server_args": triton.server_args, "grpc": ("--allow-grpc",) * triton.grpc}
    for field, words in opened.items():
        for word in refused_words(rules.args, words):
            yield "args", f"engine.triton.{field}", word, rules.args


def _of_image(rules: Rules, engine: EngineSpec, fleet: Fleet) -> Iterator[Finding]:
    image = engine.image
    if image and not has_image(rules.registries, image, fleet):
        yield "registries", "engine.image", image, rules.registries
    if image and rules.digests and not parse_reference(image).digest:
        yield "digests", "engine.image", image, "images with a digest only"


def _of_variables(rules: Rules, request: Request) -> Iterator[Finding]:
    spec = request.spec
    for field, names in (("engine.env", spec.engine.env), ("secrets", spec.secrets)):
        for name in names:
            if not has_variable(rules.env, name):
                yield "env", f"{field}.{name}", name, rules.env
    own = (
        (DEV_MODE, "sleep_level", spec.sleep_level),
        (UPDATING, "lora_updates", spec.lora_updates),
    )
    for name, field, value in own:  # these fields set variables, too
        if value and not has_variable(rules.env, name):
            yield "env", field, name, rules.env
    for variable, secret in spec.secrets.items():
        if secret in request.variables and not has_name(rules.variables, secret):
            yield "variables", f"secrets.{variable}", secret, rules.variables


def _of_container(rules: Rules, engine: EngineSpec) -> Iterator[Finding]:
    container, place = engine.container, "engine.container"
    if container.privileged and not rules.privileged:
        yield "privileged", f"{place}.privileged", True, False
    if container.network == "host" and not rules.host_network:
        yield "host_network", f"{place}.network", container.network.value, False
    if container.ipc not in rules.ipc:
        yield "ipc", f"{place}.ipc", container.ipc.value, rules.ipc
    for rule in ("capabilities", "groups"):
        for name in getattr(container, rule):
            if not has_name(getattr(rules, rule), name):
                yield rule, f"{place}.{rule}", name, getattr(rules, rule)


def _of_code_and_files(rules: Rules, request: Request) -> Iterator[Finding]:
    if request.spec.trust_remote_code and not rules.trust_remote_code:
        yield "trust_remote_code", "trust_remote_code", True, False
    yield from folder_findings(request.folders, request.roots)
    if request.applied_from and not has_name(rules.applied_from, request.applied_from):
        yield "applied_from", "applied_from", request.applied_from, rules.applied_from


def folder_findings(folders: Folders, roots: Sequence[str]) -> Iterator[Finding]:
    """Findings for `file://` sources outside the roots, whether from a spec or not."""
    for field, folder in folders:
        if not is_below(roots, folder):
            yield "file_roots", field, folder, tuple(roots)


def _of_place(rules: Rules, request: Request) -> Iterator[Finding]:
    spec, placement = request.spec, request.spec.placement
    for runtime in sorted(_runtimes(spec)):
        if runtime not in rules.runtimes:
            yield "runtimes", "engine.runtime", spec.engine.runtime.value, rules.runtimes
            break
    named = placement.accelerators if isinstance(placement.accelerators, tuple) else ()
    for host in sorted({one.partition(":")[0] for one in named}):
        if not has_name(rules.hosts, host):
            yield "hosts", "placement.accelerators", host, rules.hosts
    if placement.cluster and not has_name(rules.hosts, placement.cluster):
        yield "hosts", "placement.cluster", placement.cluster, rules.hosts
    for label, value in placement.host_labels.items():
        if label in rules.host_labels and not has_name(rules.host_labels[label], value):
            allowed = rules.host_labels[label]
            yield "host_labels", f"placement.host_labels.{label}", value, allowed
    if not placement.cluster and not allowed_hosts(rules, request.fleet).hosts:
        names = [host.name for host in request.fleet.hosts]
        rule = "hosts" if not any(has_name(rules.hosts, name) for name in names) else "host_labels"
        yield rule, "fleet.hosts", ", ".join(names), getattr(rules, rule)


def _runtimes(spec: ModelSpec) -> set[RuntimeName]:
    """The runtimes that may start the model. The placement decides later what `auto` means."""
    if spec.placement.cluster or spec.engine.runtime == RuntimeName.RAY:
        return {RuntimeName.RAY}
    if spec.engine.runtime != RuntimeName.AUTO:
        return {spec.engine.runtime}
    return {RuntimeName.DOCKER, RuntimeName.PROCESS}


def size_findings(rules: Rules, held: Usage, others: Usage) -> Iterator[Finding]:
    """Findings for replicas and accelerators of a model, and of all its owner's models."""
    together = held + others
    for rule, field, count in (
        ("replicas", "replicas", held.replicas),
        ("accelerators", "placement.accelerators", held.accelerators),
        ("owner_replicas", "replicas", together.replicas),
        ("owner_accelerators", "placement.accelerators", together.accelerators),
    ):
        limit = getattr(rules, rule)
        if limit is not None and count > limit:
            whose = " for all models of an owner" if rule.startswith("owner_") else ""
            yield rule, field, count, f"{limit} at most{whose}"


def _has_host(rules: Rules, host: Host) -> bool:
    return has_name(rules.hosts, host.name) and all(
        label in host.labels and has_name(values, host.labels[label])
        for label, values in rules.host_labels.items()
    )


def _in_words(allowed: object) -> str:
    if isinstance(allowed, tuple):
        return ", ".join(str(getattr(one, "value", one)) for one in allowed) or "none"
    return "none" if allowed is False else str(allowed)
