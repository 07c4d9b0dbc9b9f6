"""The doorman: holds requests for a sleeping model, wakes it once, and forwards them.

Gateways route only sleeping models to it, so its speed matters little. Callers may be attackers:
the size of each body, the size of all held bodies, the number of waiting callers and their waiting
time are limited.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any, NamedTuple

import httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from moorage.common.failures import Failure
from moorage.gateway.routes import MODEL_HEADER
from moorage.gateway.waking import FailedWake, next_failure

HOP_BY_HOP = frozenset(
    {"connection", "content-length", "host", "keep-alive", "te", "transfer-encoding", "upgrade"}
    | {MODEL_HEADER}
)
LONGEST_ERROR = 64 * 1024
"""Most bytes of an engine's error that a stream forwards."""

COMMENT = b": the model is starting\n\n"


class Endpoint(NamedTuple):
    """Where a model answers.

    Attributes:
        urls: Base URLs, one for each replica.
        key: API key that its engine requires; empty = none.
    """

    urls: tuple[str, ...]
    key: str = ""
    release: str = ""


class Limits(NamedTuple):
    """Limits of the doorman.

    Attributes:
        waiting: Most callers that wait for one model at a time.
        body_bytes: Largest body of a request.
        held_bytes: Most bytes of all waiting bodies together.
        hold_seconds: How long a caller waits for a model.
        quiet_seconds: Interval at which a waiting streaming caller gets a comment.
    """

    waiting: int = 500
    body_bytes: int = 50 * 2**20
    held_bytes: int = 512 * 2**20
    hold_seconds: float = 600.0
    quiet_seconds: float = 5.0


class Refused(Exception):
    """The doorman does not forward a request."""

    def __init__(self, reason: str, retry_seconds: float, status: int = 503) -> None:
        super().__init__(reason)
        self.reason, self.retry_seconds, self.status = reason, retry_seconds, status


class Doorman:
    """One service for all models of a ledger: an ASGI application.

    Args:
        wake: Wakes a model, waits until it has answered with a token, and returns its endpoint.
            Called once for all callers that wait for the same model.
        clock: Seconds, never decreasing.

    Attributes:
        active: Callers' requests now, waiting or forwarded, by model.
        passing: Requests now forwarded to engines, by release.
    """

    def __init__(
        self,
        wake: Callable[[str], Awaitable[Endpoint]],
        limits: Limits = Limits(),  # noqa: B008
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wake, self._limits, self._clock = wake, limits, clock
        self._waking: dict[str, asyncio.Task[Endpoint]] = {}
        self._failed: dict[str, FailedWake] = {}
        self._waiting: Counter[str] = Counter()
        self._held = 0
        self.active: Counter[str] = Counter()
        self.passing: Counter[str] = Counter()
        self._in_flight: Counter[str] = Counter()
        # Its own limit of 100 connections would let the callers of one model hold up all others.
        unlimited = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._http = httpx.AsyncClient(
            timeout=None, trust_env=False, follow_redirects=False, limits=unlimited
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, and release its resources in every outcome."""
        request = Request(scope, receive)
        async with AsyncExitStack() as held:
            held.enter_context(_counted(self.active, request.headers.get(MODEL_HEADER, "")))
            try:
                response = await self._answer(request, held)
            except Refused as refused:
                response = _refusal(refused)
            await response(scope, receive, send)

    async def _answer(self, request: Request, held: AsyncExitStack) -> Response:
        model = request.headers.get(MODEL_HEADER, "")
        if not model:
            raise Refused("This address is for the gateway only.", 0, 400)
        body = await self._body(request)
        waking = asyncio.create_task(self._endpoint(model))
        waking.add_done_callback(lambda _: self._hold(-len(body)))
        held.callback(waking.cancel)
        quiet = self._limits.quiet_seconds if _streams(body) else None
        await _unless_caller_leaves(waking, request, quiet)
        if not waking.done():
            return self._held_stream(waking, request, body, held)
        asking = asyncio.create_task(self._ask(await waking, request, body, held))
        await _unless_caller_leaves(asking, request)
        answer = await asking
        headers = {k: v for k, v in answer.headers.items() if k not in HOP_BY_HOP}
        return StreamingResponse(answer.aiter_raw(), answer.status_code, headers)

    async def _body(self, request: Request) -> bytes:
        """Read the body; its bytes count as held from now on."""
        body = bytearray()
        try:
            async for piece in request.stream():
                self._hold(len(piece))
                body += piece
                if len(body) > self._limits.body_bytes:
                    raise Refused("The request is too large.", 0, 413)
                if self._held > self._limits.held_bytes:
                    raise Refused("Too many requests wait.", self._limits.quiet_seconds)
        except BaseException:
            self._hold(-len(body))
            raise
        return bytes(body)

    def _hold(self, size: int) -> None:
        self._held += size

    async def _endpoint(self, model: str) -> Endpoint:
        """Wait until a model answers; return its endpoint."""
        failed = self._failed.get(model)
        if failed and (wait := failed.wait_seconds(self._clock())):
            raise Refused(f"'{model}' did not start: {failed.reason}", wait)
        if self._waiting[model] >= self._limits.waiting:
            raise Refused(f"Too many requests wait for '{model}'.", self._limits.quiet_seconds)
        if model not in self._waking:
            self._waking[model] = asyncio.create_task(self._wake_once(model))
        try:
            # A caller that leaves must not cancel the start for the others, hence the shield.
            with _counted(self._waiting, model):
                async with asyncio.timeout(self._limits.hold_seconds):
                    return await asyncio.shield(self._waking[model])
        except TimeoutError:
            raise Refused(f"'{model}' is still starting.", self._limits.quiet_seconds) from None

    async def _wake_once(self, model: str) -> Endpoint:
        try:
            found = await self._wake(model)
        except (Failure, OSError) as failure:
            record = next_failure(self._failed.get(model), str(failure), self._clock())
            self._failed[model] = record
            raise Refused(
                f"'{model}' did not start: {failure}", record.wait_seconds(record.at)
            ) from None
        else:
            self._failed.pop(model, None)
            return found
        finally:
            del self._waking[model]

    def _held_stream(
        self,
        waking: asyncio.Task[Endpoint],
        request: Request,
        body: bytes,
        held: AsyncExitStack,
    ) -> Response:
        async def events() -> AsyncIterator[bytes]:
            try:
                while not waking.done():
                    yield COMMENT
                    await asyncio.wait({waking}, timeout=self._limits.quiet_seconds)
                answer = await self._ask(await waking, request, body, held)
            except Refused as refused:
                yield _event(json.dumps(_error(refused)).encode())
                return
            if answer.is_error:
                yield _event(await _start_of(answer))
                return
            async for piece in answer.aiter_raw():
                yield piece

        return StreamingResponse(events(), media_type="text/event-stream")

    async def _ask(
        self, to: Endpoint, request: Request, body: bytes, held: AsyncExitStack
    ) -> httpx.Response:
        """Forward a request to the replica with the fewest requests, or after failures to others.

        Raises:
            Refused: No replica has begun to answer.
        """
        headers = [(k, v) for k, v in request.headers.items() if k not in HOP_BY_HOP]
        if to.key:
            headers = [(k, v) for k, v in headers if k != "authorization"]
            headers.append(("authorization", f"Bearer {to.key}"))
        query = request.url.query.encode() or None
        # The path as Envoy has checked it: decoded here and again by the engine, it may be another.
        path = request.scope["raw_path"].decode("ascii")
        held.enter_context(_counted(self.passing, to.release))
        problem: httpx.HTTPError | None = None
        for base in sorted(to.urls, key=self._in_flight.__getitem__):
            url = httpx.URL(f"{base}{path}", query=query)
            forwarded = self._http.build_request(request.method, url, headers=headers, content=body)
            held.enter_context(_counted(self._in_flight, base))
            try:
                answer = await self._http.send(forwarded, stream=True)
            except httpx.HTTPError as error:
                problem = error
            else:
                held.push_async_callback(answer.aclose)
                return answer
        raise Refused(f"The engine does not answer: {problem}", 1) from problem


@contextmanager
def _counted(counter: Counter[str], name: str) -> Iterator[None]:
    counter[name] += 1
    try:
        yield
    finally:
        counter[name] -= 1


async def _unless_caller_leaves(
    work: asyncio.Task[Any], request: Request, seconds: float | None = None
) -> None:
    """Wait for the work or a number of seconds; cancel the work when the caller leaves.

    Raises:
        Refused: The caller has left.
    """
    leaving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({work, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if leaving.done() and not work.done():
            work.cancel()
            raise Refused("The caller has left.", 0, 499)
    finally:
        leaving.cancel()


async def _start_of(answer: httpx.Response) -> bytes:
    content = b""
    async for piece in answer.aiter_bytes():
        content += piece
        if len(content) > LONGEST_ERROR:
            break
    return content


def _event(content: bytes) -> bytes:
    """A server-sent event with the content as one line of data."""
    return b"data: " + b" ".join(content.splitlines()) + b"\n\n"


def _streams(body: bytes) -> bool:
    try:
        content: Any = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("stream") is True


def _refusal(refused: Refused) -> Response:
    headers = {"retry-after": str(max(1, round(refused.retry_seconds)))}
    return JSONResponse(_error(refused), refused.status, headers)


def _error(refused: Refused) -> dict[str, Any]:
    found = {"type": "server_error", "param": "model", "code": "model_unavailable"}
    return {"error": {"message": refused.reason, **found}}
