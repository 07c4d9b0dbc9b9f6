"""How much of the prompts the replicas of a model have in their caches, by how they are chosen.

Four stand-in replicas with prefix caches answer the same requests behind the gateway, with each
value of `routing`, and behind vllm-router with its own defaults.

    python -m benchmarks.prefix_routing [--callers 16] [--peers FOLDER]
"""

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from benchmarks.instant_engine import MODEL
from benchmarks.proxies import AbsentError, Proxy, Starter
from moorage.spec.routing import Routing

REPLICAS = 4
Message = dict[str, str]
Prompt = list[Message]
Session = list[Prompt]
"""Requests of one caller, one after the other."""


def conversations(chance: random.Random) -> list[Session]:
    """96 conversations of 6 turns, all with one system prompt."""
    system = {"role": "system", "content": _text(chance, 4_000)}
    return [list(_turns(chance, [system], 6)) for _ in range(96)]


def applications(chance: random.Random) -> list[Session]:
    """600 short questions, each with one of 24 long system prompts."""
    systems = [{"role": "system", "content": _text(chance, 24_000)} for _ in range(24)]
    return [[[chance.choice(systems), _question(chance)]] for _ in range(600)]


def documents(chance: random.Random) -> list[Session]:
    """600 questions, each after one of 60 documents in the same message."""
    texts = [_text(chance, 12_000) for _ in range(60)]
    return [
        [[{"role": "user", "content": f"{chance.choice(texts)} {_text(chance, 100)}"}]]
        for _ in range(600)
    ]


WORKLOADS: tuple[Callable[[random.Random], list[Session]], ...] = (
    conversations,
    applications,
    documents,
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--callers", type=int, default=16)
    parser.add_argument("--peers", type=Path)
    chosen = parser.parse_args()
    for workload in WORKLOADS:
        for way in (*Routing, "vllm-router"):
            with tempfile.TemporaryDirectory() as folder:
                starter = Starter(Path(folder), chosen.peers, None)
                figures = _measure(starter, way, workload(random.Random(1)), chosen.callers)
            print(json.dumps({"workload": workload.__name__, "way": way, **figures}), flush=True)


def _measure(
    starter: Starter, way: str, sessions: list[Session], callers: int
) -> dict[str, object]:
    """Start new replicas and a proxy in front of them, and send all requests once."""
    started: list[Proxy] = []
    try:
        for _ in range(REPLICAS):
            started.append(starter.caching_engine())
        ports = [engine.port for engine in started]
        started.append(
            starter.vllm_router(*ports)
            if way == "vllm-router"
            else starter.envoy(ports, routing=Routing(way))
        )
        return asyncio.run(_ask_all(started[-1].port, sessions, callers))
    except AbsentError as error:
        return {"absent": str(error)}
    finally:
        for each in started:
            each.stop()


async def _ask_all(port: int, sessions: list[Session], callers: int) -> dict[str, object]:
    waiting, answers = list(reversed(sessions)), list[tuple[float, int, int]]()

    async def call(http: httpx.AsyncClient) -> None:
        while waiting:
            for prompt in waiting.pop():
                begun = time.perf_counter()
                answer = await http.post(
                    "/v1/chat/completions", json={"model": MODEL, "messages": prompt}
                )
                found = answer.raise_for_status().json()
                answers.append((time.perf_counter() - begun, found["known"], found["blocks"]))

    begun = time.perf_counter()
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
        await asyncio.gather(*(call(http) for _ in range(callers)))
    seconds = [each for each, _, _ in answers]
    share = sum(known for _, known, _ in answers) / sum(blocks for _, _, blocks in answers)
    cuts = statistics.quantiles(seconds, n=100)
    return {
        "requests": len(answers),
        "cached": round(share, 3),
        "p50_ms": round(cuts[49] * 1000, 1),
        "p99_ms": round(cuts[98] * 1000, 1),
        "seconds": round(time.perf_counter() - begun, 2),
    }


def _turns(chance: random.Random, prompt: Prompt, turns: int) -> Iterator[Prompt]:
    for _ in range(turns):
        prompt = [*prompt, _question(chance)]
        yield prompt
        prompt = [*prompt, {"role": "assistant", "content": _text(chance, 1_500)}]


def _question(chance: random.Random) -> Message:
    return {"role": "user", "content": _text(chance, 200)}


def _text(chance: random.Random, characters: int) -> str:
    return "".join(chance.choices("abcdefgh ", k=characters))


if __name__ == "__main__":
    main()
