"""Proxies of a benchmark answer before they are measured, or are absent with the reason."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from benchmarks.proxies import AbsentError, Proxy, Starter


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Proxy]:
    (tmp_path / "engine").mkdir()
    proxy = Starter(tmp_path / "engine", None, None).engine()
    yield proxy
    proxy.stop()


def _peers(folder: Path, script: str) -> Path:
    program = folder / "vllm-router" / "bin" / "vllm-router"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder


def test_the_gateway_answers_when_it_is_started_and_is_measured(
    tmp_path: Path, engine: Proxy
) -> None:
    gateway = Starter(tmp_path, None, 0).envoy([engine.port], keys=3)
    try:
        assert gateway.rss_mb() > 10
        assert gateway.cpu_seconds() > 0
        assert gateway.process.cpu_affinity() == [0]
    finally:
        gateway.stop()
    assert not psutil.pid_exists(gateway.process.pid)


def test_a_peer_that_ends_is_absent_with_its_last_words(tmp_path: Path, engine: Proxy) -> None:
    peers = _peers(tmp_path / "peers", "echo starting; echo no such option >&2; exit 2")
    with pytest.raises(AbsentError, match="vllm-router has ended: no such option"):
        Starter(tmp_path, peers, None).vllm_router(engine.port)


def test_a_peer_without_a_folder_is_absent(tmp_path: Path, engine: Proxy) -> None:
    with pytest.raises(AbsentError, match="--peers is not given"):
        Starter(tmp_path, None, None).litellm(engine.port)
