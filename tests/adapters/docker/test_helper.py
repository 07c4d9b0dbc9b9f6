"""Helpers may work for hours; a daemon that is gone is not waited for as long."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from docker.errors import APIError
from requests.exceptions import ConnectionError, ReadTimeout

from moorage.adapters.docker import helper
from moorage.adapters.docker.helper import HelperJob, helper_options, run_helper
from moorage.common.failures import Failure
from moorage.inventory.access import Access
from moorage.inventory.survey.vendors import BY_NVIDIA_RUNTIME, NOTHING, Handed
from tests.log_stream import LogStream

HOURS = 4 * 3600


class Daemon:
    """A daemon that tells of the end of its one container only after some questions.

    Attributes:
        ends: What each next question about the end brings.
        lives: Whether it answers otherwise.
        waits: How long each question was to wait.
    """

    def __init__(
        self, *ends: Any, lives: bool = True, removable: bool = True, output: str = "done\n"
    ) -> None:
        self.ends, self.lives, self.removable, self.output = list(ends), lives, removable, output
        self.waits: list[float] = []
        self.containers, self.name = self, "moorage-keep-1"

    def create(self, *_: Any, **arguments: Any) -> Daemon:
        self.created = arguments
        return self

    def start(self) -> None:
        """It starts at once."""

    def wait(self, timeout: float) -> dict[str, int]:
        self.waits.append(timeout)
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return {"StatusCode": end}

    def reload(self) -> None:
        if not self.lives:
            raise ReadTimeout("nobody is there")

    def logs(self, **_: Any) -> LogStream:
        return LogStream(self.output.encode())

    def remove(self, **_: Any) -> None:
        if not (self.removable and self.lives):
            raise APIError("500", explanation="could not kill container")


def run(
    monkeypatch: pytest.MonkeyPatch,
    daemon: Daemon,
    seconds: int = HOURS,
    handed: Handed = NOTHING,
) -> str:
    waits: list[int] = []

    def connect(_: Access, read_seconds: int) -> Daemon:
        waits.append(read_seconds)
        return daemon

    monkeypatch.setattr(helper, "connect", connect)
    try:
        job = HelperJob("h:1", ["true"], "keep", seconds, handed)
        return run_helper(Access(address="local"), job)
    finally:
        assert max(waits) <= 60


@pytest.mark.parametrize("handed", [NOTHING, BY_NVIDIA_RUNTIME])
def test_a_runtime_may_provide_a_helpers_accelerators(
    monkeypatch: pytest.MonkeyPatch, handed: Handed
) -> None:
    daemon = Daemon(0)
    run(monkeypatch, daemon, handed=handed)
    assert daemon.created["runtime"] == (handed.runtime or None)
    assert (daemon.created["device_requests"], daemon.created["environment"]) == (
        [],
        handed.environment,
    )


def test_long_work_is_asked_for_in_short_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = Daemon(ReadTimeout("slow"), ConnectionError("Read timed out"), 0)
    assert run(monkeypatch, daemon) == "done\n"
    assert max(daemon.waits) <= 60


def test_a_long_line_comes_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of a store with many models is one line of JSON."""
    output = json.dumps(["a model"] * 9000) + "\n"
    assert run(monkeypatch, Daemon(0, output=output)) == output


def test_no_password_of_a_proxy_gets_into_its_environment() -> None:
    """Docker's library would take the proxies of `~/.docker/config.json`."""
    assert helper_options("probe", ["true"])["use_config_proxy"] is False


def test_a_daemon_that_is_gone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReadTimeout, match="nobody is there"):
        run(monkeypatch, Daemon(ReadTimeout("silence"), lives=False))


def test_what_takes_too_long_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    daemon, began = Daemon(*[ReadTimeout("slow")] * 9), time.monotonic()
    with pytest.raises(ReadTimeout, match="slow"):
        run(monkeypatch, daemon, seconds=1)
    assert len(daemon.waits) == 1
    assert time.monotonic() - began < 5


def test_one_that_cannot_be_removed_still_says_what_it_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(monkeypatch, Daemon(0, removable=False)) == "done\n"
    with pytest.raises(Failure, match="ended with 3"):
        run(monkeypatch, Daemon(3, removable=False))
