"""Secrets by name: an environment variable of this process, else a Prefect Secret block.

Every value that is read is registered. From then on, engines' logs, answers and failures are shown
without it.
"""

import contextlib
import os
import re
import secrets
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from moorage.adapters.files.safe_files import write_private
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.common.redaction import Redactor
from moorage.engines.api_key import is_generated

KEPT_VARIABLE = "MOORAGE_KEPT_SERVER"
"""Variable with the address of the kept Prefect server, if this process uses it without a
configured API. That server may be gone tomorrow, so keys are still stored in files."""

KEY_BYTES = 32
FOLDER = "keys"
SHELL_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
AnyFailure = TypeVar("AnyFailure", bound=Failure)


def read_secrets(names: Iterable[str]) -> dict[str, str]:
    """The values of secrets, by name; `SECRET_MISSING` has the names of all missing secrets.

    Call it outside the event loop.
    """
    found = {name: value for name in names if (value := _read(name)) is not None}
    missing = sorted(set(names) - set(found))
    if missing:
        raise Failure(Cause.SECRET_MISSING, ", ".join(missing), suggestion=_how_to_give(missing))
    remember(found)
    return found


def provide_secrets(names: Iterable[str]) -> dict[str, str]:
    """The values of secrets by name; a missing key of moorage's own is generated.

    Raises as `read_secrets` and `provide_key`.
    """
    wanted = set(names)
    made = {name: provide_key(name) for name in wanted if is_generated(name)}
    remember(made)
    return made | read_secrets(wanted - set(made))


def learn_secrets(names: Iterable[str]) -> None:
    """Register, for redaction, the secrets that can be read without starting a Prefect server."""
    for name in names:
        with contextlib.suppress(Failure):
            if os.environ.get(name, "").strip() or is_generated(name) or has_api():
                read_secrets([name])


def _read(name: str) -> str | None:
    if is_generated(name):
        return find_key(name)
    value = os.environ.get(name, "")
    if not value.strip():  # last, because the import of Prefect takes seconds
        value = read_block(name) or ""
    # Files and `echo` end with a newline, which no header may contain.
    return value.rstrip("\r\n") if value.strip() else None


def find_key(name: str) -> str | None:
    """The generated key of a name; None = missing.

    If a Prefect API is configured, the key file is still read: an engine that was started before
    has that key. Raises as `read_block`.
    """
    return (read_block(name) if has_api() else None) or _read_file(name)


def provide_key(name: str) -> str:
    """The key of a name, generated if it is missing.

    A key file from before a Prefect API was configured is copied to the API, because serving
    engines already require that key.

    Raises:
        Failure: `SERVER_UNAVAILABLE` or `STORE_UNWRITABLE` when it cannot be stored.
    """
    with_api = has_api()
    if with_api and (in_block := read_block(name)):
        return in_block
    in_file = _read_file(name)
    if in_file and not with_api:
        return in_file
    key = in_file or secrets.token_urlsafe(KEY_BYTES)
    remember({name: key})
    if with_api:
        return _save_block(name, key)
    write_private(_path(name), key, over=False)
    return _read_file(name) or key  # another process may have been faster


def has_api() -> bool:
    """Whether a Prefect API is configured. The kept server does not count: it stores no keys."""
    from prefect.settings import get_current_settings  # noqa: PLC0415  (takes seconds)

    url = get_current_settings().api.url
    return bool(url) and url != os.environ.get(KEPT_VARIABLE)


def read_block(name: str) -> str | None:
    """The Prefect Secret block of a name; None = missing. Raises `SERVER_UNAVAILABLE`."""
    from prefect.blocks.system import Secret  # noqa: PLC0415  (takes seconds)

    from moorage.adapters.prefect.api_errors import server_failure  # noqa: PLC0415  (as above)
    from moorage.adapters.prefect.api_login import readable_server  # noqa: PLC0415  (as above)

    try:
        with readable_server() as is_there:
            if not is_there:
                return None
            found = Secret.load(_block(name), _sync=True)  # type: ignore[call-arg]
    except Exception as error:
        failure = server_failure(error)
        if failure is None and isinstance(error, ValueError):
            return None
        raise failure or error from None
    return str(found.get())  # type: ignore[union-attr]


def _save_block(name: str, key: str) -> str:
    """Store a key as a block; returns the key of another process that was faster, if any."""
    import httpx  # noqa: PLC0415  (Prefect needs it)
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


def _how_to_give(names: Iterable[str]) -> str:
    """How to give secrets; a shell cannot export names with hyphens."""
    every = [
        f"a Prefect Secret block `{_block(name)}`"
        + (f" or `export {name}=...` where this runs" if SHELL_NAME.fullmatch(name) else "")
        for name in names
    ]
    return f"Give {', and '.join(every)}. docs/sources.md (Tokens) shows how to make a block."


def _block(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _read_file(name: str) -> str | None:
    try:
        return _path(name).read_text().strip() or None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failure(Cause.STORE_UNWRITABLE, f"{_path(name)}: {error.strerror}") from None


def _path(name: str) -> Path:
    return Settings().root / FOLDER / name


_names: dict[str, str] = {}
"""Names by value of all secrets that this process has read; a changed one has several values."""

_redactor = Redactor({})
_LOCK = threading.Lock()


def remember(values: Mapping[str, str]) -> None:
    """Register the values of secrets by name."""
    global _redactor
    names = {value: name for name, value in values.items()}
    with _LOCK:
        if not names.items() <= _names.items():
            _names.update(names)
            _redactor = Redactor(_names)


def redact(text: str) -> str:
    """A text without the values of secrets that this process knows."""
    return _redactor(text)


def redact_failure(failure: AnyFailure) -> AnyFailure:
    """The same failure with all its text redacted."""
    failure.detail = redact(failure.detail)
    failure.log_tail = redact(failure.log_tail)
    failure.evidence = redact(failure.evidence)
    failure.args = tuple(redact(one) if type(one) is str else one for one in failure.args)
    return failure
