"""The API key of an engine: whose it is, and when moorage makes one."""

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
"""Prefix of the names of generated keys; they are names of Prefect blocks, too."""


def key_name(model: str) -> str:
    """Name of the secret that holds a model's key; its replicas and releases share it."""
    plain = slug(model)
    if plain == model:
        return f"{KEY_PREFIX}{plain}"
    # `a.b` and `a-b` are two models, and a block's name knows no dots.
    return f"{KEY_PREFIX}{plain}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"


def is_generated(name: str) -> bool:
    """Whether a secret is a key that moorage generates."""
    return name.startswith(KEY_PREFIX)


def states_a_key(spec: ModelSpec, variable: str) -> bool:
    """Whether the spec itself gives the server a key.

    Args:
        spec: What the user wrote.
        variable: The variable of the engine's key; empty = it has none.
    """
    lines = (spec.engine.arguments, parse_words(spec.engine.command or ()))
    return variable in spec.secrets or any(line.has(KEY_OPTION) for line in lines)


def generated_key(request: LaunchRequest, variable: str) -> tuple[Variable, ...]:
    """The key that moorage generates for an engine that other machines reach and that has none."""
    spec = request.spec
    decided = states_a_key(spec, variable) or variable in spec.engine.env
    wanted = spec.engine.api_key == ApiKey.AUTO and not decided
    if not (variable and wanted and request.leads and is_exposed(request)):
        return ()
    reason = f"other machines reach {request.host.bind}; `moorage key show` prints it"
    secret = key_name(spec.name)
    return (Variable(name=variable, secret=secret, origin=Origin.DEFAULT, reason=reason),)


def requires_key(request: LaunchRequest, variable: str) -> bool:
    """Whether the server will ask for a key."""
    return states_a_key(request.spec, variable) or bool(generated_key(request, variable))


def is_exposed(request: LaunchRequest) -> bool:
    """Whether other machines reach it by the host's `bind`, an IP address."""
    return not ipaddress.ip_address(request.host.bind).is_loopback


def open_access_warning(request: LaunchRequest) -> tuple[str, ...]:
    """The warning about an engine without a key that other machines reach."""
    if not is_exposed(request):
        return ()
    return (
        f"the engine answers everybody who reaches {request.host.bind} on {request.host.name}, and"
        " knows no key; a proxy in front of it can ask for one",
    )


def key_secret(plan: LaunchPlan, variable: str) -> str:
    """Name of the secret with the key of a plan's engine; empty = it asks for none."""
    return next(
        (v.secret for v in _variables(plan) if variable and v.name == variable and v.secret), ""
    )


def secrets_of(plan: LaunchPlan | None) -> frozenset[str]:
    """Names of all secrets of what a plan starts."""
    return frozenset(v.secret for v in _variables(plan) if v.secret) if plan else frozenset()


def _variables(plan: LaunchPlan) -> Iterable[Variable]:
    return (variable for spec in plan.containers for variable in spec.environment)
