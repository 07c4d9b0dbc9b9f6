"""Secrets by name: an environment variable of this process, else a Prefect Secret block."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from moorage.adapters.secrets.engine_keys import find_key, has_api, provide_key, read_block
from moorage.adapters.secrets.redacting import remember
from moorage.common.failures import Cause, Failure
from moorage.engines.api_key import is_generated


def read_secrets(names: Iterable[str]) -> dict[str, str]:
    """The values of secrets, by name. Call it outside the event loop.

    Raises:
        Failure: `SECRET_MISSING`, naming all that are not there.
    """
    found = {name: value for name in names if (value := _read(name)) is not None}
    missing = sorted(set(names) - set(found))
    if missing:
        raise Failure(Cause.SECRET_MISSING, ", ".join(missing))
    remember(found)
    return found


def provide_secrets(names: Iterable[str]) -> dict[str, str]:
    """The same, where a key that moorage makes itself is made if there is none.

    Raises:
        Failure: `SECRET_MISSING`, or what keeps a key from being kept.
    """
    wanted = set(names)
    made = {name: provide_key(name) for name in wanted if is_generated(name)}
    remember(made)
    return made | read_secrets(wanted - set(made))


def learn_secrets(names: Iterable[str]) -> None:
    """Make known those secrets that can be read here at once, so that no text shows them."""
    for name in names:
        with contextlib.suppress(Failure):
            if name in os.environ or is_generated(name) or has_api():
                read_secrets([name])


def _read(name: str) -> str | None:
    if is_generated(name):
        return find_key(name)
    if (value := os.environ.get(name)) is not None:
        return value
    # Prefect takes seconds to import, and a bad spec is refused before that.
    return read_block(name)
