"""HTTP with checked redirects, and with one deadline for everything that a thread reads.

It works with httpx and httpx2; newer clients of the hub use the latter.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from moorage.adapters.system.threads import variable_scope
from moorage.adapters.system.timed_http import TimedBackend
from moorage.adapters.transfer.http_pool import MOST_REDIRECTS, proxy_for
from moorage.adapters.transfer.redirects import Guard, RedirectRefused

_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)


def guarded_client(library: Any, guard: Guard, *, verify: Any = True, **options: Any) -> Any:
    """A client that connects only to addresses that a guard allows, or to the environment's proxy.

    A proxy resolves names itself, so through it the guard checks URLs only.
    """

    def check(request: Any) -> None:
        with _library_errors(library):
            guard.require_url(str(request.url))

    return library.Client(
        transport=_Transport(library, guard, verify),
        event_hooks={"request": [check]},
        follow_redirects=True,
        max_redirects=MOST_REDIRECTS,
        **options,
    )


def thread_deadline(seconds: float) -> AbstractContextManager[None]:
    """Set one deadline for everything that this thread reads within the block."""
    return variable_scope(_DEADLINE, time.monotonic() + seconds)


class _Transport(AbstractContextManager[Any]):
    """Sends each request directly, or through the proxy that the environment names for it.

    The library would not use its own support of proxies together with a transport of ours.
    """

    def __init__(self, library: Any, guard: Guard, verify: Any) -> None:
        self._library, self._verify = library, verify
        direct = library.HTTPTransport(verify=verify)
        # The library cannot connect to a chosen address and keep the host name for TLS.
        direct._pool._network_backend = _Backend(direct._pool._network_backend, guard, library)
        self._by_proxy = {"": direct}

    def handle_request(self, request: Any) -> Any:
        with _library_errors(self._library):
            proxy = proxy_for(urlsplit(str(request.url)))
        at = proxy.geturl() if proxy else ""
        if at not in self._by_proxy:
            made = self._library.HTTPTransport(verify=self._verify, proxy=at)
            inner = made._pool._network_backend
            made._pool._network_backend = TimedBackend(inner, self._library, _DEADLINE.get)
            self._by_proxy[at] = made
        return self._by_proxy[at].handle_request(request)

    def close(self) -> None:
        for transport in self._by_proxy.values():
            transport.close()

    def __exit__(self, *_: object) -> None:
        self.close()


class _Backend(TimedBackend):
    """Connects to checked addresses, and reads within the deadline of the thread."""

    def __init__(self, inner: Any, guard: Guard, library: Any) -> None:
        super().__init__(inner, library, _DEADLINE.get)
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
