"""What the gateway adds to a request beside the engine itself, and what other proxies add.

The engine is a stand-in that answers at once, so the figures are the proxies'. Direct requests and
those through each proxy alternate in rounds. A peer that cannot be installed or started is printed
as absent, with the reason.

    python -m benchmarks.gateway [--requests 2000] [--callers 8] [--keys 1000]
        [--peers FOLDER] [--core 3]

`--peers` is a folder for virtual environments with vllm-router and LiteLLM's proxy, which are
installed there with pip; `--core` is the only core that the proxies may use.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.chat_callers import ask_all, stream_all
from benchmarks.proxies import KEY, AbsentError, Proxy, Starter

ROUNDS = 5


@dataclass
class Way:
    """A way to the engine, and its measurements.

    Attributes:
        key: API key of the callers; empty = none.
        seconds: Seconds of each whole answer.
        spent: Processor seconds of the proxy.
        firsts: Seconds until the first token of each stream.
    """

    name: str
    proxy: Proxy
    key: str = ""
    seconds: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    spent: float = 0.0
    tokens: int = 0

    def ask(self, count: int, callers: int) -> None:
        """Measure one round of whole answers."""
        before = self.proxy.cpu_seconds()
        self.seconds += asyncio.run(ask_all(self.proxy.port, self.key, count, callers))
        self.spent += self.proxy.cpu_seconds() - before

    def stream(self, callers: int) -> None:
        """Measure one round of streams."""
        before = self.proxy.cpu_seconds()
        tokens, firsts = asyncio.run(stream_all(self.proxy.port, self.key, callers))
        self.spent += self.proxy.cpu_seconds() - before
        self.tokens, self.firsts = self.tokens + tokens, self.firsts + firsts

    def clear(self) -> None:
        """Drop the measurements."""
        self.seconds, self.firsts, self.spent, self.tokens = [], [], 0.0, 0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--core", type=int)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ways = _ways(Starter(folder, chosen.peers, chosen.core), chosen.keys, stack)
        for callers in (1, chosen.callers):
            _measure_requests(ways, chosen.requests, callers)
        _measure_streams(ways, chosen.callers)
        for way in ways[1:]:
            _print({"way": way.name, "rss_mb": round(way.proxy.rss_mb())})


def _ways(starter: Starter, keys: int, stack: ExitStack) -> list[Way]:
    """All available ways; the first is the engine itself."""

    def started(proxy: Proxy) -> Proxy:
        stack.callback(proxy.stop)
        return proxy

    engine = started(starter.engine())
    gateway = started(starter.envoy([engine.port], keys))
    ways = [Way("direct", engine), Way("gateway", gateway), Way("with a key", gateway, KEY)]
    peers: list[tuple[str, str, Callable[[int], Proxy]]] = [
        ("vllm-router", "", starter.vllm_router),
        ("LiteLLM", KEY, starter.litellm),
    ]
    for name, key, start in peers:
        try:
            ways.append(Way(name, started(start(engine.port)), key))
        except AbsentError as error:
            _print({"way": name, "absent": str(error)})
    return ways


def _measure_requests(ways: list[Way], requests: int, callers: int) -> None:
    for way in ways:
        way.clear()
    for _ in range(ROUNDS):
        for way in ways:
            way.ask(requests // ROUNDS, callers)
    direct = _quantiles(ways[0].seconds)
    for way in ways:
        p50, p99 = _quantiles(way.seconds)
        figures = {"p50_ms": p50, "p99_ms": p99}
        added = {"added_p50_ms": p50 - direct[0], "added_p99_ms": p99 - direct[1]}
        spent = {"cpu_ms_a_request": way.spent / len(way.seconds) * 1000}
        _report(way, callers, figures if way is ways[0] else figures | added | spent)


def _measure_streams(ways: list[Way], callers: int) -> None:
    for way in ways:
        way.clear()
    for _ in range(ROUNDS):
        for way in ways:
            way.stream(callers)
    for way in ways:
        first = {"first_token_p50_ms": statistics.median(way.firsts) * 1000}
        spent = {"cpu_ms_a_token": way.spent / way.tokens * 1000}
        _report(way, callers, first if way is ways[0] else first | spent)


def _quantiles(seconds: list[float]) -> tuple[float, float]:
    """The milliseconds that 50 and 99 of 100 requests do not exceed."""
    cuts = statistics.quantiles(seconds, n=100)
    return cuts[49] * 1000, cuts[98] * 1000


def _report(way: Way, callers: int, figures: dict[str, float]) -> None:
    counted = {"requests": len(way.seconds)} if way.seconds else {"tokens": way.tokens}
    rounded = {name: round(each, 3) for name, each in figures.items()}
    _print({"way": way.name, "callers": callers, **counted, **rounded})


def _print(line: dict[str, object]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
