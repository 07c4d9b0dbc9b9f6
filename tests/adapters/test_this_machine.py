"""Ports and processes of this machine are found as psutil finds them, only sooner."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from moorage.adapters.listening import listening_ports

from moorage.adapters import bearing as processes
from moorage.adapters import listening as ports
from moorage.adapters.bearing import bearing

NAME = "MOORAGE_TEST_MARK"


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[int]:
    """A process that bears a mark."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", "print(flush=True); input()"],
        env={**os.environ, NAME: str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    process.stdout.readline()
    yield process.pid
    process.communicate(b"\n")


@pytest.mark.parametrize("linux", [True, False])
def test_a_process_is_found_by_its_whole_mark_and_no_other_is(
    marked: int, linux: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not linux:
        monkeypatch.setattr(processes, "PROCESSES", tmp_path / "none")
    assert bearing(NAME, str(tmp_path)) == [marked]
    assert bearing(NAME, str(tmp_path)[:-1]) == []
    assert bearing(NAME[1:], str(tmp_path)) == []


@pytest.mark.parametrize("linux", [True, False])
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_port_is_found_while_somebody_listens_on_it(
    linux: bool, family: socket.AddressFamily, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not linux:
        table = tmp_path / "tcp"
        table.write_text("header\n0: no:port 0:0 0A\n")
        monkeypatch.setattr(ports, "TABLES", (str(table),))
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    if family == socket.AF_INET6 and not Path("/proc/net/if_inet6").exists():
        pytest.skip("this kernel has no IPv6")
    with socket.create_server((host, 0), family=family) as server:
        port = server.getsockname()[1]
        assert port in listening_ports()
    assert port not in listening_ports()
