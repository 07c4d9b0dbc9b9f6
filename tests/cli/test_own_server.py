from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from moorage.adapters.prefect.home_server import FOLDER, SERVER
from moorage.cli.own_server import OwnServer
from tests.waiting import until

URL = "http://127.0.0.1:4200/api"


def a_process() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "600"])


def test_a_server_that_was_killed_is_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = OwnServer(tmp_path, URL, a_process)
    server.keep()
    try:
        first = server.process.pid
        os.kill(first, signal.SIGKILL)
        until(lambda: server.process.pid != first)
        record = tmp_path / FOLDER / SERVER
        until(lambda: f'"pid":{server.process.pid}' in record.read_text())
        assert "ended (status -9) and is started again" in capsys.readouterr().err
    finally:
        server.stop()


def test_one_that_is_to_end_stays_ended(tmp_path: Path) -> None:
    server = OwnServer(tmp_path, URL, a_process)
    server.keep()
    pid = server.process.pid
    server.stop()
    assert (server.process.pid, psutil.pid_exists(pid)) == (pid, False)
    assert not (tmp_path / FOLDER / SERVER).exists()
