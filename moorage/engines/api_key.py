"""The API key of an engine: who provides it, and when moorage generates one."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moorage.common.values import Origin
from moorage.engines.flags import Variable
from moorage.spec import ApiKey, slug
from moorage.spec.arguments import parse_words

if TYPE_CHECKING:
    from moorage.engines.launch import LaunchPlan
    from moorage.engines.request import LaunchRequest
    from moorage.spec import ModelSpec

KEY_OPTION = "--api-key"
KEY_PREFIX = "moorage-key-"
"""Prefix of the names of generated keys, which are also names of Prefect blocks."""


def key_name(model: str) -> str:
    """Name of the secret that holds a model's key; its replicas and releases share it."""
    plain = slug(model)
    if plain == model:
        return f"{KEY_PREFIX}{plain}"
    # `a.b` and `a-b` are different models, but names of blocks cannot have dots.
    return f"{KEY_PREFIX}{plain}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"


def is_generated(name: str) -> bool:
    """Whether a secret is a key that moorage generates."""
    return name.startswith(KEY_PREFIX)


def states_a_key(spec: ModelSpec, variable: str) -> bool:
    """Whether the spec itself gives the server a key.

    `variable` is the environment variable of the engine's key; empty = it has none.
    """
    lines = (spec.engine.arguments, parse_words(spec.engine.command or ()))
    own = spec.engine.api_key_variable or variable
    return own in spec.secrets or any(line.has(KEY_OPTION) for line in lines)


def generated_key(request: LaunchRequest, variable: str) -> tuple[Variable, ...]:
    """The generated key, for an engine that other machines reach and that has no key of its own."""
    spec = request.spec
    decided = states_a_key(spec, variable) or variable in spec.engine.env
    wanted = spec.engine.api_key == ApiKey.AUTO and not decided
    if not (variable and wanted and request.leads and is_exposed(request)):
        return ()
    reason = f"other machines reach {request.host.bind}; `moorage key show` prints it"
    secret = key_name(spec.name)
    return (Variable(name=variable, secret=secret, origin=Origin.DEFAULT, reason=reason),)


def requires_key(request: LaunchRequest, variable: str) -> bool:
    """Whether the server will require a key."""
    return states_a_key(request.spec, variable) or bool(generated_key(request, variable))


def is_exposed(request: LaunchRequest) -> bool:
    """Whether other machines can reach the engine at the host's `bind`, an IP address."""
    return not ipaddress.ip_address(request.host.bind).is_loopback


def open_access_warning(request: LaunchRequest) -> tuple[str, ...]:
    """The warning about an engine that cannot check keys and that other machines reach."""
    if not is_exposed(request) or request.spec.engine.api_key_variable:
        return ()
    return (
        f"the engine answers everybody who reaches {request.host.bind} on {request.host.name}, and"
        " knows no key; a proxy in front of it can ask for one",
    )


def key_secret(plan: LaunchPlan, variable: str) -> str:
    """Name of the secret with the key of a plan's engine; empty = it requires none.

    `variable` is the usual one of the engine; empty = it has none.
    """
    name = plan.key_variable or variable
    return next((v.secret for v in _variables(plan) if name and v.name == name and v.secret), "")


def secrets_of(plan: LaunchPlan | None) -> frozenset[str]:
    """Names of all secrets that a plan's containers use."""
    return frozenset(v.secret for v in _variables(plan) if v.secret) if plan else frozenset()


def _variables(plan: LaunchPlan) -> Iterable[Variable]:
    return (variable for spec in plan.containers for variable in spec.environment)
