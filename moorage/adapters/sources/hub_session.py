"""The HTTP client for a hub, and what its refusals mean."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from huggingface_hub import hf_raise_for_status, is_offline_mode
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from moorage.adapters.system.guarded_http import guarded_client
from moorage.adapters.transfer.redirects import Guard
from moorage.common.strict_json import JsonError, decode

http: Any = import_module(HfHubHTTPError.__bases__[0].__module__.partition(".")[0])
"""The hub client's HTTP library: httpx for its versions 1 and httpx2 for 2."""

MOST_ERROR_BYTES = 65_536

CODINGS = ("content-", "transfer-")
"""How headers begin that tell of a body as it came."""


@lru_cache(maxsize=16)
def session(endpoint: str) -> Any:
    """A client of one hub, which keeps its connections."""
    return guarded_client(http, Guard(endpoint))


def require_online() -> None:
    """Heed the hub client's own switch.

    Raises:
        OfflineModeIsEnabled: It is set.
    """
    if is_offline_mode():
        raise OfflineModeIsEnabled("HF_HUB_OFFLINE is set")


def require_success(response: Any) -> None:
    """Raise what a refusal stands for, after no more of it than a refusal may have was read."""
    if response.status_code < 400:
        return
    body = bytearray()
    for piece in response.iter_raw():
        body += piece
        if len(body) > MOST_ERROR_BYTES:
            break
    try:
        decode(bytes(body))
    except JsonError:
        body.clear()
    kept = [(k, v) for k, v in response.headers.multi_items() if not k.startswith(CODINGS)]
    hf_raise_for_status(
        http.Response(
            response.status_code, headers=kept, content=bytes(body), request=response.request
        )
    )
