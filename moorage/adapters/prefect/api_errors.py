"""Errors of Prefect's API and client as failures.

Prefect's client raises its own errors for statuses, errors of httpx, of the JSON decoder and of
pydantic, or a `RuntimeError` when it could not connect.
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import httpx

from moorage.common.failures import Cause, Failure

TRY_LATER = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
NOT_LET_IN = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}

UNREACHED = "Failed to reach API"
"""Prefect's message when it could not connect."""

CLIENT = ("prefect.client.orchestration", "prefect.client.base")
"""Modules that send requests and read the answers."""

READERS = {"propose_state", "propose_state_sync"}
"""Functions of Prefect's engine that raise errors about answers."""

LONGEST = 400
"""Limit of the characters of a message of Prefect's client."""

LOG_IN = (
    "Set PREFECT_API_AUTH_STRING to what the server was started with, or PREFECT_API_KEY for"
    " Prefect Cloud."
)


@contextmanager
def server_failures() -> Iterator[None]:
    """Raise the errors of Prefect's client as failures."""
    try:
        yield
    except Exception as error:
        raise server_failure(error) or error from None


def server_failure(error: BaseException) -> Failure | None:
    """The failure for an error of Prefect's client, with its traceback; None = another error.

    A signal may interrupt the client anywhere; it is no error of the client.
    """
    if isinstance(error, Failure) or not isinstance(error, Exception):
        return None
    if is_server_trouble(error):
        return Failure(Cause.SERVER_UNAVAILABLE, _first_line(error))
    if isinstance(error, httpx.HTTPError) or _is_of_the_client(error):
        advice = LOG_IN if _status(error) in NOT_LET_IN else None
        return Failure(Cause.SERVER_REFUSED, _first_line(error), suggestion=advice)
    return None


def is_login_refused(error: BaseException) -> bool:
    """Whether Prefect's server has refused a missing or wrong login."""
    return _status(error) == HTTPStatus.UNAUTHORIZED


def is_server_trouble(error: BaseException) -> bool:
    """Whether Prefect's server did not answer, or temporarily cannot.

    Prefect's client has already retried for about a minute (`PREFECT_CLIENT_MAX_RETRIES`).
    """
    if isinstance(error, Failure):
        return error.cause is Cause.SERVER_UNAVAILABLE
    if code := _status(error):
        return code in TRY_LATER or code >= HTTPStatus.INTERNAL_SERVER_ERROR
    unreached = isinstance(error, RuntimeError) and UNREACHED in str(error)
    return unreached or isinstance(error, httpx.TransportError)


def _status(error: BaseException) -> int:
    return error.response.status_code if isinstance(error, httpx.HTTPStatusError) else 0


def _is_of_the_client(error: BaseException) -> bool:
    return any(
        str(frame.f_globals.get("__name__", "")).startswith(CLIENT)
        or frame.f_code.co_name in READERS
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _first_line(error: BaseException) -> str:
    """The first line of an error's message, without httpx's advice to look the status up."""
    lines = str(error).strip().splitlines() or [repr(error)]
    line = lines[0].partition(" - For more information check:")[0]
    plain = isinstance(error, httpx.HTTPError | RuntimeError)
    shown = line if plain else f"it answered what its client does not understand: {line}"
    return shown[:LONGEST]
