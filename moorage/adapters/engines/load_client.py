"""Load on an engine: concurrent streamed requests, each with its timings."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import httpx

from moorage.adapters.engines.engine_http import NoAnswer, Question, failure_of, trust_for
from moorage.adapters.engines.engine_stream import THOUGHTS, TextReader
from moorage.readiness.acceptance import Sample
from moorage.readiness.protocol import MOST_BYTES

GENERATED = ("content", *THOUGHTS)
"""Fields with the text of a message: all of it took time, also what a model thinks first."""


async def send_load(
    questions: Sequence[Question], concurrency: int, seconds: float
) -> list[Sample]:
    """Send streaming requests, `concurrency` of them at a time, and measure each.

    All requests stop at once when the load is cancelled or the time is over.

    Args:
        questions: Requests to one engine; `max_tokens` limits the tokens that count.
        concurrency: Most requests in flight at a time.
        seconds: Limit for all requests together.
    """
    if not questions:
        return []
    gate, deadline = asyncio.Semaphore(concurrency), time.monotonic() + seconds
    # An engine may close an idle connection at any time, even while a request is on its way.
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
    """Arrival time of each piece of the answer."""
    times: list[float] = []
    async with client.stream(
        question.method, question.url, json=question.body, headers=question.headers
    ) as response:
        reader = TextReader(response, MOST_BYTES, usage, GENERATED)
        async for piece in response.aiter_raw():
            times += [time.monotonic() for _ in reader.feed(piece)]
        times += [time.monotonic() for _ in reader.end()]
    return times


def sample_of(begun: float, times: Sequence[float], counted: object, most: int) -> Sample:
    """Measurements of a request, from the times of its pieces and the engine's token count.

    Without a count, each piece counts as a token. Tokens without text, such as the last token, form
    no piece; an answer in one piece gives no time per token.
    """
    tokens = min(counted if isinstance(counted, int) else len(times), most)
    if tokens < 1 or not times:
        return Sample(wrong="no text was generated")
    span = times[-1] - times[0]
    tpot = span / (tokens - 1) if span > 0 and tokens > 1 else None
    return Sample(ttft=times[0] - begun, tpot=tpot, tokens=tokens)
