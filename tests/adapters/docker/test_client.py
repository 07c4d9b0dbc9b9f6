"""Which daemon is asked, and how its streams are followed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import count

import pytest
from docker.errors import TLSParameterError

from moorage.adapters.docker import client as docker_client
from moorage.adapters.docker.client import follow
from moorage.inventory.access import Access


@pytest.mark.parametrize("host", ["", "unix:///run/podman/podman.sock"])
def test_certificates_that_are_named_for_another_daemon_do_not_concern_a_socket(
    monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """Shells keep such variables long after the machine that they were set for."""
    monkeypatch.setenv("DOCKER_HOST", host)
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", "/nowhere")
    arguments = docker_client._arguments(Access(address="local"))
    assert arguments == {"base_url": host or "unix:///var/run/docker.sock"}


def test_a_daemon_of_the_environment_is_asked_with_its_certificates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:2376")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", "/nowhere")
    with pytest.raises(TLSParameterError):
        docker_client._arguments(Access(address="local"))


def test_items_come_in_order_and_end() -> None:
    assert list(follow(lambda: iter([1, 2, 3]), lambda: None)) == [1, 2, 3]


def test_what_the_stream_raises_is_raised() -> None:
    def stream() -> Iterator[int]:
        yield 1
        raise ValueError("cut")

    found = follow(stream, lambda: None)
    assert next(found) == 1
    with pytest.raises(ValueError, match="cut"):
        next(found)


def test_silence_is_borne_as_long_as_the_other_side_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(docker_client, "SILENCE_SECONDS", 0.01)
    monkeypatch.setattr(docker_client, "MISSES", 2)
    checks, go_on = [], threading.Event()

    def stream() -> Iterator[int]:
        assert go_on.wait(60)
        yield 1

    def ask() -> None:
        checks.append(1)
        if len(checks) == 2:
            raise OSError("busy")
        if len(checks) == 5:
            go_on.set()

    assert list(follow(stream, ask)) == [1]
    assert len(checks) >= 5


def test_a_stream_has_one_deadline_and_few_items_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_client, "MOST_EVENTS", 5)
    read, closed = [], threading.Event()

    def stream() -> Iterator[int]:
        try:
            for number in count():
                read.append(number)
                yield number
        finally:
            closed.set()

    found = follow(stream, lambda: None, 0.2)
    assert next(found) == 0
    time.sleep(0.2)
    assert len(read) <= 8
    with pytest.raises(TimeoutError):
        list(found)
    assert closed.wait(60)


def test_a_side_that_is_gone_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker_client, "SILENCE_SECONDS", 0.01)
    never, checks = threading.Event(), []

    def stream() -> Iterator[int]:
        never.wait(30)
        yield 1

    def ask() -> None:
        checks.append(1)
        raise OSError("no route")

    with pytest.raises(OSError, match="no route"):
        list(follow(stream, ask))
    assert len(checks) == 3
    never.set()
