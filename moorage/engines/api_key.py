"""The API key of an engine: whose it is, and when moorage makes one."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable

from moorage.common.values import Origin
from moorage.engines.launch import LaunchPlan, Variable
from moorage.engines.request import LaunchRequest
from moorage.spec import ApiKey, ModelSpec, slug
from moorage.spec.arguments import has_argument, user_tokens

KEY_OPTION = "--api-key"
PREFIX = "moorage-key-"
"""How the names of the keys begin that moorage makes: names of Prefect blocks, too."""


def key_name(model: str) -> str:
    """Name of the secret that holds a model's key; its replicas and releases share it."""
    plain = slug(model)
    if plain == model:
        return f"{PREFIX}{plain}"
    # `a.b` and `a-b` are two models, and a block's name knows no dots.
    return f"{PREFIX}{plain}-{hashlib.sha256(model.encode()).hexdigest()[:8]}"


def is_made_here(name: str) -> bool:
    """Whether a secret is a key that moorage makes where there is none."""
    return name.startswith(PREFIX)


def gives_a_key(spec: ModelSpec, variable: str) -> bool:
    """Whether the spec itself makes the server ask for a key.

    Args:
        spec: What the user wrote.
        variable: The one that the engine takes its key from; empty = it has none.
    """
    words = (*user_tokens(spec.engine.args), *(spec.engine.command or ()))
    return variable in spec.secrets or has_argument(words, KEY_OPTION)


def made_key(request: LaunchRequest, variable: str) -> tuple[Variable, ...]:
    """The key that moorage gives an engine that other machines reach, where nobody else does."""
    spec = request.spec
    decided = gives_a_key(spec, variable) or variable in spec.engine.env
    wanted = spec.engine.api_key == ApiKey.AUTO and not decided
    if not (variable and wanted and request.leads and is_exposed(request)):
        return ()
    reason = f"other machines reach {request.host.bind}; `moorage key` shows it"
    secret = key_name(spec.name)
    return (Variable(name=variable, secret=secret, origin=Origin.DEFAULT, reason=reason),)


def asks_for_a_key(request: LaunchRequest, variable: str) -> bool:
    """Whether the server will ask for a key, whoever gave it."""
    return gives_a_key(request.spec, variable) or bool(made_key(request, variable))


def is_exposed(request: LaunchRequest) -> bool:
    """Whether other machines reach it; `bind` is an IP address, and `--host` is ours to give."""
    return not ipaddress.ip_address(request.host.bind).is_loopback


def open_to_all(request: LaunchRequest) -> tuple[str, ...]:
    """The warning about an engine that knows no key and that other machines reach."""
    if not is_exposed(request):
        return ()
    return (
        f"the engine answers everybody who reaches {request.host.bind} on {request.host.name}, and"
        " knows no key; a proxy in front of it can ask for one",
    )


def key_secret(plan: LaunchPlan, variable: str) -> str:
    """Name of the secret that holds the key of what a plan starts; empty = it asks for none."""
    return next(
        (v.secret for v in _variables(plan) if variable and v.name == variable and v.secret), ""
    )


def secrets_of(plan: LaunchPlan | None) -> frozenset[str]:
    """Names of all secrets of what a plan starts."""
    return frozenset(v.secret for v in _variables(plan) if v.secret) if plan else frozenset()


def _variables(plan: LaunchPlan) -> Iterable[Variable]:
    return (variable for spec in plan.containers for variable in spec.environment)
