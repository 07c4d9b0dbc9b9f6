"""A load on engines: streamed requests, some at a time, and how long the parts of each took."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import httpx

from moorage.adapters.engines.engine_http import NoAnswer, Question, failure_of, trust_for
from moorage.adapters.engines.engine_stream import TextReader
from moorage.readiness.acceptance import Sample
from moorage.readiness.protocol import MOST_BYTES


async def send_load(
    questions: Sequence[Question], concurrency: int, seconds: float
) -> list[Sample]:
    """Send requests for streams, each as soon as one before it has ended.

    A cancelled load ends at once, and so does everything when the time is over.

    Args:
        questions: All to one engine; their `max_tokens` is the most that an answer can have.
        concurrency: Requests that are under way at the same time.
        seconds: How long all of them may take.
    """
    if not questions:
        return []
    gate, deadline = asyncio.Semaphore(concurrency), time.monotonic() + seconds
    # An engine closes an idle connection when it likes, also while a request is on its way.
    fresh = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(
        timeout=None, trust_env=False, verify=trust_for(questions[0].url), limits=fresh
    ) as client:

        async def measured(question: Question) -> Sample:
            async with gate:
                return await _measured(client, question, deadline)

        return list(await asyncio.gather(*map(measured, questions)))


async def _measured(client: httpx.AsyncClient, question: Question, deadline: float) -> Sample:
    begun = time.monotonic()
    if begun >= deadline:
        return Sample(wrong="not sent before the deadline")
    usage: dict[str, Any] = {}
    try:
        async with asyncio.timeout(deadline - begun):
            times = await _times(client, question, usage)
    except TimeoutError:
        return Sample(wrong="no whole answer before the deadline")
    except NoAnswer as error:
        return Sample(wrong=str(error))
    except (httpx.TransportError, httpx.InvalidURL, OSError) as error:
        return Sample(wrong=str(failure_of(error)))
    most = int((question.body or {}).get("max_tokens", len(times)))
    return sample_of(begun, times, usage.get("completion_tokens"), most)


async def _times(
    client: httpx.AsyncClient, question: Question, usage: dict[str, Any]
) -> list[float]:
    """When each piece of the answer came."""
    times: list[float] = []
    async with client.stream(
        question.method, question.url, json=question.body, headers=question.headers
    ) as response:
        reader = TextReader(response, MOST_BYTES, usage)
        async for piece in response.aiter_raw():
            times += [time.monotonic() for _ in reader.feed(piece)]
        times += [time.monotonic() for _ in reader.end()]
    return times


def sample_of(begun: float, times: Sequence[float], counted: object, most: int) -> Sample:
    """A request by the times of its pieces, and its tokens as the engine counts them.

    Without such a count each piece is a token. Tokens without a text, such as the last one, are no
    piece; an answer that came in one piece tells no time per token.
    """
    tokens = min(counted if isinstance(counted, int) else len(times), most)
    if tokens < 1 or not times:
        return Sample(wrong="no text was generated")
    span = times[-1] - times[0]
    tpot = span / (tokens - 1) if span > 0 and tokens > 1 else None
    return Sample(ttft=times[0] - begun, tpot=tpot, tokens=tokens)
