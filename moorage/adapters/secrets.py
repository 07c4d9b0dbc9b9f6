"""Secrets by name: an environment variable of this process, else a Prefect Secret block."""

from __future__ import annotations

import os
from collections.abc import Iterable

import httpx

from moorage.failures import Cause, Failure


def read_secrets(names: Iterable[str]) -> dict[str, str]:
    """The values of secrets, by name. Call it outside the event loop.

    Raises:
        Failure: `SECRET_MISSING`, naming all that are not there.
    """
    found = {name: value for name in names if (value := _read(name)) is not None}
    missing = sorted(set(names) - set(found))
    if missing:
        raise Failure(Cause.SECRET_MISSING, ", ".join(missing))
    return found


def _read(name: str) -> str | None:
    if (value := os.environ.get(name)) is not None:
        return value
    # Prefect takes seconds to import, and a bad spec is refused before that.
    from prefect.blocks.system import Secret  # noqa: PLC0415

    block = name.lower().replace("_", "-").replace(".", "-")
    try:
        found = Secret.load(block, _sync=True)  # type: ignore[call-arg]
    except ValueError:
        return None
    except (httpx.HTTPError, RuntimeError) as error:
        raise Failure(Cause.SERVER_UNAVAILABLE, f"looking for secret {name}: {error}") from None
    return str(found.get())  # type: ignore[union-attr]
