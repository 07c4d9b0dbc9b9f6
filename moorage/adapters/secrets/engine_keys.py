"""Keys that moorage makes for engines that other machines reach.

Where a Prefect API is configured they are Secret blocks, which every worker can read; else files
under `MOORAGE_HOME`, readable by this user alone. The ledger holds their names only.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

import httpx

from moorage.adapters.prefect.api_errors import server_failure
from moorage.adapters.secrets.redacting import remember
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure

KEY_BYTES = 32
FOLDER = "keys"


def find_key(name: str) -> str | None:
    """The key of that name; None = there is none.

    Raises:
        Failure: `SERVER_UNAVAILABLE` when the configured Prefect API does not answer.
    """
    if not has_api():
        return _read_file(name)
    return read_block(name)


def provide_key(name: str) -> str:
    """The key of that name, made where there is none.

    A key that this machine made before it had a Prefect API moves there: what serves already asks
    for it.

    Raises:
        Failure: `SERVER_UNAVAILABLE` or `STORE_UNWRITABLE` when it cannot be kept.
    """
    if found := find_key(name):
        return found
    key = _read_file(name) or secrets.token_urlsafe(KEY_BYTES)
    remember({name: key})
    return _save_block(name, key) if has_api() else _save_file(name, key)


def has_api() -> bool:
    """Whether a Prefect API is configured; one that is started for each command keeps nothing."""
    from prefect.settings import get_current_settings  # noqa: PLC0415  (takes seconds)

    return bool(get_current_settings().api.url)


def read_block(name: str) -> str | None:
    """The Prefect Secret block of a name; None = there is none.

    Raises:
        Failure: `SERVER_UNAVAILABLE`.
    """
    from prefect.blocks.system import Secret  # noqa: PLC0415  (takes seconds)

    from moorage.adapters.prefect.sign_in import sign_in  # noqa: PLC0415

    sign_in()
    try:
        found = Secret.load(_block(name), _sync=True)  # type: ignore[call-arg]
    except Exception as error:
        failure = server_failure(error)
        if failure is None and isinstance(error, ValueError):
            return None
        raise failure or error from None
    return str(found.get())  # type: ignore[union-attr]


def _save_block(name: str, key: str) -> str:
    """Keep a key; whoever was quicker wins."""
    from prefect.blocks.system import Secret  # noqa: PLC0415  (takes seconds)

    try:
        Secret(value=key).save(_block(name), _sync=True)  # type: ignore[call-arg]
    except (ValueError, httpx.HTTPError, RuntimeError) as error:
        if found := read_block(name):
            return found
        raise Failure(
            Cause.SERVER_UNAVAILABLE,
            f"keeping the key {name} as a Prefect Secret block: {error}",
            suggestion="Let the API store blocks; or name a secret of your own in `secrets`, or"
            " set `engine.api_key: none`.",
        ) from None
    return key


def _block(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _read_file(name: str) -> str | None:
    try:
        return _path(name).read_text().strip() or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failure(Cause.STORE_UNWRITABLE, f"{_path(name)}: {error.strerror}") from None


def _save_file(name: str, key: str) -> str:
    """Keep a key in a file that is whole from the first moment; whoever was quicker wins."""
    path = _path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        # Made for this user alone.
        descriptor, draft = tempfile.mkstemp(prefix=f".{name}.", dir=path.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{key}\n")
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        os.unlink(draft)
    except OSError as error:
        raise Failure(Cause.STORE_UNWRITABLE, f"{path}: {error.strerror}") from None
    return _read_file(name) or key


def _path(name: str) -> Path:
    return Settings().root / FOLDER / name
