"""Helpers may work for hours; a daemon that is gone is not waited for as long."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from moorage.adapters.docker import connection
from moorage.adapters.docker.helper_job import FolderMissing, HelperJob, run_helper
from moorage.common.failures import Cause, Failure
from moorage.inventory.survey.vendors import AMD, BY_NVIDIA_RUNTIME, HANDED, NOTHING, NVIDIA, Handed
from tests.scripted_daemon import SILENT, framed, serving
from tests.scripted_daemon import ScriptedDaemon as Scripted

HOURS = 4 * 3600
FASTER = 100
"""By which factor the daemon's time-outs are shortened."""

PODMAN: dict[str, Any] = {"Components": [{"Name": "Podman Engine"}]}

Run = Callable[..., str]


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time-outs that are set; the true ones are shorter."""
    limits: list[float] = []

    true = connection.Daemon.limit

    def limit(daemon: connection.Daemon, seconds: float) -> None:
        limits.append(seconds)
        true(daemon, seconds / FASTER)

    monkeypatch.setattr(connection.Daemon, "limit", limit)
    return limits


@pytest.fixture
def daemon() -> Scripted:
    return Scripted()


@pytest.fixture
def run(daemon: Scripted, limits: list[float]) -> Run:
    """Run a helper on the daemon, which is never silent for more than a minute."""

    def run(seconds: int = HOURS, handed: Handed = NOTHING, **more: Any) -> str:
        with serving(daemon) as access:
            try:
                return run_helper(
                    access, HelperJob("h:1", ["true"], "keep", seconds, handed, **more)
                )
            finally:
                assert max(limits, default=0) <= 60

    return run


@pytest.mark.parametrize("handed", [NOTHING, BY_NVIDIA_RUNTIME])
def test_a_runtime_may_provide_a_helpers_accelerators(
    daemon: Scripted, run: Run, handed: Handed
) -> None:
    run(handed=handed)
    assert (daemon.created["Runtime"], daemon.created["DeviceRequests"]) == (handed.runtime, [])
    assert daemon.created["Env"] == [f"{key}={value}" for key, value in handed.environment.items()]


def test_a_device_request_is_for_all_of_nvidias_accelerators(daemon: Scripted, run: Run) -> None:
    run(handed=HANDED[NVIDIA])
    assert daemon.created["DeviceRequests"] == [{"Count": -1, "Capabilities": [["gpu", "utility"]]}]


def test_devices_are_handed_over_one_by_one(daemon: Scripted, run: Run) -> None:
    run(handed=HANDED[AMD])
    assert [one["PathOnHost"] for one in daemon.created["Devices"]] == ["/dev/kfd", "/dev/dri"]


def test_podman_would_ignore_a_device_request(daemon: Scripted, run: Run) -> None:
    daemon.answers["GET version"] = (200, PODMAN)
    with pytest.raises(Failure, match="Podman on") as caught:
        run(handed=HANDED[NVIDIA])
    assert caught.value.cause is Cause.ACCELERATOR_RUNTIME_MISSING
    assert daemon.bodies == []


@pytest.mark.parametrize(
    ("writes", "folders", "dropped", "added"),
    [
        (False, {}, ["ALL"], []),
        (False, {"/store": "/srv/models"}, ["ALL"], ["DAC_OVERRIDE"]),
        (True, {"/store": "/srv/models"}, [], ["DAC_OVERRIDE"]),
    ],
)
def test_a_helper_has_no_rights_but_those_that_its_folders_need(
    daemon: Scripted,
    run: Run,
    writes: bool,
    folders: dict[str, str],
    dropped: Any,
    added: Any,
) -> None:
    run(folders=folders, writes=writes)
    made = daemon.created
    assert (made["CapDrop"], made["CapAdd"]) == (dropped, added)
    assert (made["ReadonlyRootfs"], made["SecurityOpt"]) == (True, ["no-new-privileges"])
    assert "Privileged" not in made
    assert [(one["Source"], one["Target"], one["ReadOnly"]) for one in made["Mounts"]] == [
        (folder, place, not writes) for place, folder in folders.items()
    ]


def test_no_password_of_a_proxy_gets_into_its_environment(
    daemon: Scripted, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://ops:s3cret@127.0.0.1:9")
    run()
    assert daemon.created["Env"] == []


def test_long_work_is_asked_for_in_short_questions(daemon: Scripted, run: Run) -> None:
    daemon.answers["POST wait"] = [SILENT, SILENT, (200, {"StatusCode": 0})]
    assert run() == "done\n"
    assert daemon.asked.count("POST wait") == 3


def test_a_long_line_comes_whole(daemon: Scripted, run: Run) -> None:
    """The list of a store with many models is one line of JSON."""
    output = json.dumps(["a model"] * 9000) + "\n"
    daemon.answers["GET logs"] = (200, framed(output))
    assert run() == output


def test_frames_are_joined_and_one_that_is_cut_off_is_what_came(daemon: Scripted, run: Run) -> None:
    daemon.answers["GET logs"] = (200, framed("a\r\n") + framed("b\r") + framed("c", 9) + b"")
    assert run() == "a\nb\nc"


def test_output_without_end_is_not_read(
    daemon: Scripted, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_BYTES", 1000)
    daemon.answers["GET logs"] = (200, framed("x" * 2000))
    with pytest.raises(Failure, match="more than 1,000 bytes"):
        run()
    assert daemon.asked[-1] == "DELETE c0ffee"


def test_a_daemon_that_is_gone_is_noticed(daemon: Scripted, run: Run) -> None:
    daemon.answers["POST wait"] = daemon.answers["GET json"] = SILENT
    with pytest.raises(Failure, match="timed out") as caught:
        run()
    assert caught.value.cause is Cause.RUNTIME_UNAVAILABLE


def test_what_takes_too_long_is_not_asked_for_again(daemon: Scripted, run: Run) -> None:
    daemon.answers["POST wait"] = SILENT
    with pytest.raises(Failure, match="timed out"):
        run(seconds=1)
    assert daemon.asked.count("POST wait") == 1
    assert daemon.asked[-1] == "DELETE c0ffee"


@pytest.mark.parametrize("code", [0, 3])
def test_one_that_cannot_be_removed_still_says_what_it_said(
    daemon: Scripted, run: Run, code: int
) -> None:
    daemon.answers["DELETE c0ffee"] = (500, {"message": "could not kill container"})
    daemon.answers["POST wait"] = (200, {"StatusCode": code})
    if not code:
        assert run() == "done\n"
        return
    with pytest.raises(Failure, match="ended with 3: done"):
        run()


@pytest.mark.parametrize(
    ("verb", "status", "message", "handed", "cause"),
    [
        ("create", 404, "No such image: h:1", NOTHING, Cause.IMAGE_MISSING),
        ("create", 404, "404 page not found", NOTHING, Cause.RUNTIME_UNAVAILABLE),
        ("create", 500, "no space left on device", NOTHING, Cause.DISK_FULL),
        ("start", 500, "it broke", NOTHING, Cause.RUNTIME_UNAVAILABLE),
        ("start", 500, "no such device", HANDED[AMD], Cause.ACCELERATOR_RUNTIME_MISSING),
    ],
)
def test_what_a_daemon_does_not_do_has_its_cause(
    daemon: Scripted,
    run: Run,
    verb: str,
    status: int,
    message: str,
    handed: Handed,
    cause: Cause,
) -> None:
    daemon.answers[f"POST {verb}"] = (status, {"message": message})
    with pytest.raises(Failure) as caught:
        run(handed=handed)
    assert caught.value.cause is cause
    assert cause is Cause.IMAGE_MISSING or message in caught.value.detail
    assert ("DELETE c0ffee" in daemon.asked) == (verb == "start")


@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("POST create", (201, b"")),
        ("POST create", (201, {})),
        ("POST create", (201, [])),
        ("POST wait", (200, b"")),
        ("POST wait", (200, {"StatusCode": None})),
        ("POST wait", (302, {"StatusCode": 0})),
        ("GET version", (404, b"404 page not found")),
        ("GET version", (200, b"null")),
    ],
)
def test_nonsense_is_a_failure_of_the_host(
    daemon: Scripted, run: Run, what: str, answer: Any
) -> None:
    daemon.answers[what] = answer
    with pytest.raises(Failure) as caught:
        run(handed=HANDED[NVIDIA])
    assert caught.value.cause in (Cause.RUNTIME_UNAVAILABLE, Cause.ACCELERATOR_RUNTIME_MISSING)


def test_a_log_may_take_longer_than_the_rest_of_the_programs_time(
    run: Run, limits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.FASTER", 1)
    assert run(seconds=2) == "done\n"
    assert limits[-2:] == [30, 30]


def test_a_folder_that_the_host_lacks_is_told_apart(daemon: Scripted, run: Run) -> None:
    message = "invalid mount config for type: bind source path does not exist: /srv/models"
    daemon.answers["POST create"] = (400, {"message": message})
    with pytest.raises(FolderMissing, match="/srv/models"):
        run(folders={"/store": "/srv/models"})


def test_an_error_without_a_message_is_told_in_part(daemon: Scripted, run: Run) -> None:
    daemon.answers["POST start"] = (502, b"<html>" + b"x" * 100_000)
    with pytest.raises(Failure, match="<html>xxx") as caught:
        run()
    assert len(caught.value.detail) < 3000
