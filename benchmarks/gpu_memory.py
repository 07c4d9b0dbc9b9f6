"""Memory on a real GPU: what moorage predicts and what vLLM then takes, through `moorage deploy`.

Needs an NVIDIA GPU, and vLLM beside this Python. Models have the shapes of real ones and weights of
zeros (`hollow_model.py`), so nothing is downloaded. Each is deployed, asked for a token, read
(record, log, the driver's figures) and retired; `beside` is deployed while the one before serves,
and those with a `sleep_level` are put to sleep and woken.

    python -m benchmarks.gpu_memory [--cases NAME ...] [--seconds 480] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml

from benchmarks.hollow_model import write_hollow_model

DEPLOY_SECONDS = 240


@dataclass(frozen=True)
class Case:
    """One deploy.

    Attributes:
        model: A model of the conformance data.
        context: Longest request in tokens.
        arguments: Engine arguments.
        mode: Mode of the model.
        beside: Whether it is deployed while the previous case still serves.
        sleep_level: Sleep level of its engine; 0 = it is not put to sleep.
    """

    model: str
    context: int
    arguments: tuple[str, ...] = ()
    mode: str = "completion"
    beside: bool = False
    sleep_level: int = 0


CASES = {
    "llama": Case("llama-3.1-8b", 8192),
    "beside": Case("qwen3-0.6b", 8192, beside=True),
    "embedding": Case("bge-base-en", 512, mode="embedding"),
    "eager": Case("llama-3.1-8b", 32768, ("--enforce-eager", "--kv-cache-dtype=fp8")),
    "window": Case("mistral-7b-v0.1", 16384),
    "experts": Case("qwen3-30b-a3b", 8192),
    "deep": Case("gemma-3-27b-text", 8192),
    "sleeping": Case("qwen3-0.6b", 8192, sleep_level=1),
    "emptied": Case("qwen3-0.6b", 8192, ("--enforce-eager",), sleep_level=2),
}


def main() -> None:
    """Deploy all cases, print a line for each, and write all results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seconds", type=float, default=3600, help="begin no case after that")
    parser.add_argument("--out", type=Path, help="write records and logs as JSON")
    options = parser.parse_args()
    pynvml.nvmlInit()
    deadline, results = time.monotonic() + options.seconds, []
    with tempfile.TemporaryDirectory(prefix="gpu-memory-") as folder:
        place = Place(Path(folder))
        for name in options.cases:
            if time.monotonic() > deadline:
                break
            results.append(place.measure(name, CASES[name]))
            print(summary(results[-1]), flush=True)
            if options.out:
                options.out.write_text(json.dumps(results, indent=1))
        place.end()


class Place:
    """A new home and the models deployed in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._serving: list[str] = []
        self._environment = os.environ | {"MOORAGE_HOME": str(folder / "home")}

    def measure(self, name: str, case: Case) -> dict[str, Any]:
        """Deploy one case; returns its record, log, and the driver's figures."""
        if not case.beside:
            self._retire()
        source = self._folder / case.model
        if not source.exists():
            write_hollow_model(case.model, source)
        spec = self._folder / f"{name}.json"
        spec.write_text(json.dumps(a_spec(name, source, case)))
        before, began = used_bytes(), time.monotonic()
        deployed = self._moorage("deploy", str(spec))
        took = time.monotonic() - began
        self._serving.append(name)
        return {
            "case": name,
            "model": case.model,
            "seconds": round(took, 1),
            "rc": deployed.returncode,
            "deploy": deployed.stdout[-6000:],
            "before": before,
            "after": used_bytes(),
            "processes": process_bytes(),
            "asleep": self._sleep(name) if case.sleep_level else None,
            "record": json_or_text(self._moorage("show", name, "--json").stdout),
            "log": self._moorage("logs", name, "--tail", "4000").stdout,
        }

    def _sleep(self, name: str) -> dict[str, Any]:
        """Put a model to sleep and wake it; returns its memory and claims asleep, and seconds."""
        began = time.monotonic()
        unloaded = self._moorage("unload", name)
        asleep, processes = time.monotonic(), process_bytes()
        fleet = json_or_text(self._moorage("fleet", "--json").stdout)
        waking = time.monotonic()
        loaded = self._moorage("load", name)
        return {
            "rc": [unloaded.returncode, loaded.returncode],
            "seconds": [round(asleep - began, 1), round(time.monotonic() - waking, 1)],
            "processes": processes,
            "fleet": fleet,
            "output": [unloaded.stdout, loaded.stdout],
        }

    def end(self) -> None:
        """Retire the serving models, and stop the home's server."""
        self._retire()
        self._moorage("server", "stop")

    def _retire(self) -> None:
        while self._serving:
            self._moorage("retire", self._serving.pop())

    def _moorage(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "moorage.cli", *words],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if words[0] in ("deploy", "unload", "load") else None,
            text=True,
            timeout=DEPLOY_SECONDS + 60,
            check=False,
        )


def a_spec(name: str, source: Path, case: Case) -> dict[str, Any]:
    """The content of a case's spec."""
    return {
        "name": name,
        "source": f"file://{source}",
        "mode": case.mode,
        "context": case.context,
        "sleep_level": case.sleep_level,
        "engine": {"name": "vllm", "runtime": "process", "args": list(case.arguments)},
        "placement": {"accelerators": 1},
        "readiness": {"deadlines": {"load_seconds": DEPLOY_SECONDS}},
    }


def used_bytes() -> list[int]:
    """Used bytes of each GPU, by the driver's count."""
    handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
    return [int(pynvml.nvmlDeviceGetMemoryInfo(one).used) for one in handles]


def process_bytes() -> list[int]:
    """Bytes of each process on the first GPU, by the driver's count; empty where unknown."""
    first = pynvml.nvmlDeviceGetHandleByIndex(0)
    found = pynvml.nvmlDeviceGetComputeRunningProcesses(first)
    return [int(one.usedGpuMemory or 0) for one in found]


def json_or_text(text: str) -> Any:
    """A program's output, decoded where it is JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def summary(result: dict[str, Any]) -> str:
    """One line for the terminal."""
    taken = sum(result["after"]) - sum(result["before"])
    return f"{result['case']}: rc {result['rc']}, {result['seconds']} s, {taken / 2**30:.2f} GiB"


if __name__ == "__main__":
    main()
