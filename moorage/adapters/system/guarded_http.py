"""HTTP with checked redirects, and with one deadline for everything that a thread reads."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

import httpx

from moorage.adapters.system.threads import variable_scope
from moorage.adapters.system.timed_http import TimedBackend
from moorage.adapters.transfer.http_pool import MOST_REDIRECTS, proxy_for
from moorage.adapters.transfer.redirects import Guard, RedirectRefused

_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)


def guarded_client(guard: Guard, *, verify: Any = True, **options: Any) -> httpx.Client:
    """A client that connects only to addresses that a guard allows, or to the environment's proxy.

    A proxy resolves names itself, so through it the guard checks URLs only.
    """

    def check(request: httpx.Request) -> None:
        with _httpx_errors():
            guard.require_url(str(request.url))

    return httpx.Client(
        transport=_Transport(guard, verify),
        event_hooks={"request": [check]},
        follow_redirects=True,
        max_redirects=MOST_REDIRECTS,
        **options,
    )


def thread_deadline(seconds: float) -> AbstractContextManager[None]:
    """Set one deadline for everything that this thread reads within the block."""
    return variable_scope(_DEADLINE, time.monotonic() + seconds)


class _Transport(httpx.BaseTransport):
    """Sends each request directly, or through the proxy that the environment names for it.

    httpx would not use its own support of proxies together with a transport of ours.
    """

    def __init__(self, guard: Guard, verify: Any) -> None:
        self._verify, direct = verify, httpx.HTTPTransport(verify=verify)
        # httpx cannot connect to a chosen address and keep the host name for TLS.
        pool: Any = direct._pool
        pool._network_backend = _Backend(pool._network_backend, guard)
        self._by_proxy = {"": direct}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with _httpx_errors():
            proxy = proxy_for(urlsplit(str(request.url)))
        at = proxy.geturl() if proxy else ""
        if at not in self._by_proxy:
            made = httpx.HTTPTransport(verify=self._verify, proxy=at)
            pool: Any = made._pool
            pool._network_backend = TimedBackend(pool._network_backend, _DEADLINE.get)
            self._by_proxy[at] = made
        return self._by_proxy[at].handle_request(request)

    def close(self) -> None:
        for transport in self._by_proxy.values():
            transport.close()


class _Backend(TimedBackend):
    """Connects to checked addresses, and reads within the deadline of the thread."""

    def __init__(self, inner: Any, guard: Guard) -> None:
        super().__init__(inner, _DEADLINE.get)
        self._guard = guard

    def connect_tcp(self, host: str, port: int, *more: Any, **named: Any) -> Any:
        with _httpx_errors():
            *others, last = self._guard.addresses(host, port)
        for address in others:
            with suppress(Exception):  # the last address raises its error
                return super().connect_tcp(address, port, *more, **named)
        return super().connect_tcp(last, port, *more, **named)


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Turn the guard's refusals and unknown host names into errors of httpx."""
    try:
        yield
    except RedirectRefused as error:
        raise httpx.UnsupportedProtocol(str(error)) from None
    except OSError as error:
        raise httpx.ConnectError(str(error)) from None
