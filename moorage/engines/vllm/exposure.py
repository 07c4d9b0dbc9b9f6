"""What of a vLLM server may be reached from other machines."""

from __future__ import annotations

from moorage.common.failures import Cause, Failure
from moorage.engines.keys import asks_for_a_key, is_exposed
from moorage.engines.request import LaunchRequest

DEV_MODE = "VLLM_SERVER_DEV_MODE"
API_KEY = "VLLM_API_KEY"


def unguarded(request: LaunchRequest) -> Failure | None:
    """Development paths are refused beyond loopback: the API key does not guard them.

    vLLM 0.32 mounts `/sleep`, `/collective_rpc`, `/reset_prefix_cache`, `/server_info` and others
    in development mode, outside the prefixes that its key guards (`middleware/authenticate.py`).

    Returns:
        `BAD_SPEC` with the reason; None when nobody else reaches them.
    """
    if not (_in_dev_mode(request) and is_exposed(request)):
        return None
    return Failure(
        Cause.BAD_SPEC,
        f"{DEV_MODE}: everybody who reaches {request.host.bind} on {request.host.name} could put"
        " the engine to sleep and call its workers; its API key does not guard these paths",
        suggestion=f"Leave {DEV_MODE} out, or use a host of the fleet whose `bind` is 127.0.0.1.",
    )


def exposure_warnings(request: LaunchRequest) -> tuple[str, ...]:
    """Development paths that only this host reaches, and a server that asks nobody for a key."""
    warnings = []
    if _in_dev_mode(request):
        warnings.append(
            f"{DEV_MODE}: everybody on {request.host.name} can put the engine to sleep and call its"
            " workers; its API key does not guard these paths"
        )
    if is_exposed(request) and not asks_for_a_key(request, API_KEY):
        warnings.append(
            f"the engine answers everybody who reaches {request.host.bind} on"
            f" {request.host.name}; `secrets: {{{API_KEY}: NAME}}` makes it ask for a key"
        )
    return tuple(warnings)


def _in_dev_mode(request: LaunchRequest) -> bool:
    """As vLLM reads it: any whole number but 0 (`envs.py`). What cannot be read counts too."""
    if DEV_MODE in request.spec.secrets:
        return True
    written = request.spec.engine.env.get(DEV_MODE, "0")
    try:
        return int(written) != 0
    except ValueError:
        return True
