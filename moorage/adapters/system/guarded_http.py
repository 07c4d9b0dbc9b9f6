"""HTTP with checked redirects, and with one deadline for everything that a thread reads.

It works with httpx and httpx2; newer clients of the hub use the latter.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moorage.adapters.system.timed_http import TimedBackend
from moorage.adapters.transfer.redirects import Guard, RedirectRefused

MOST_REDIRECTS = 5

_DEADLINE = threading.local()


def guarded_client(library: Any, guard: Guard, *, verify: Any = True, **options: Any) -> Any:
    """A client that connects only to addresses that a guard allows."""

    def check(request: Any) -> None:
        with _library_errors(library):
            guard.require_url(str(request.url))

    transport = library.HTTPTransport(verify=verify)
    # The library cannot connect to a chosen address and keep the host name for TLS.
    transport._pool._network_backend = _Backend(transport._pool._network_backend, guard, library)
    return library.Client(
        transport=transport,
        event_hooks={"request": [check]},
        follow_redirects=True,
        max_redirects=MOST_REDIRECTS,
        **options,
    )


@contextmanager
def thread_deadline(seconds: float) -> Iterator[None]:
    """Set one deadline for everything that this thread reads within the block."""
    _DEADLINE.until = time.monotonic() + seconds
    try:
        yield
    finally:
        _DEADLINE.until = None


class _Backend(TimedBackend):
    """Connects to checked addresses, and reads within the deadline of the thread."""

    def __init__(self, inner: Any, guard: Guard, library: Any) -> None:
        super().__init__(inner, library, lambda: getattr(_DEADLINE, "until", None))
        self._guard = guard

    def connect_tcp(self, host: str, port: int, *more: Any, **named: Any) -> Any:
        with _library_errors(self._library):
            *others, last = self._guard.addresses(host, port)
        for address in others:
            try:
                return super().connect_tcp(address, port, *more, **named)
            except Exception:  # the type depends on the library; the last address raises its error
                continue
        return super().connect_tcp(last, port, *more, **named)


@contextmanager
def _library_errors(library: Any) -> Iterator[None]:
    """Turn the guard's refusals and unknown host names into the library's errors."""
    try:
        yield
    except RedirectRefused as error:
        raise library.UnsupportedProtocol(str(error)) from None
    except OSError as error:
        raise library.ConnectError(str(error)) from None
