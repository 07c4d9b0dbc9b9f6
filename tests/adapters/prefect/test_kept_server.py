"""The Prefect server that commands start and keep, as they meet it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from moorage.adapters.prefect import home_server
from moorage.adapters.prefect.home_server import (
    RunningServer,
    find_login,
    kept_server,
    running_server,
    stop_server,
)
from moorage.adapters.system.process import INTERPRETER
from moorage.cli import serve
from moorage.common.failures import Failure
from tests.foreign_modules import foreign_modules
from tests.prefect_server import prepared_home
from tests.waiting import until

pytestmark = [pytest.mark.server, pytest.mark.process]

STARTER = """
import sys
from pathlib import Path
from moorage.adapters.prefect.home_server import kept_server
print(kept_server(Path(sys.argv[1]), 3600).model_dump_json())
"""


PREPARED = """
import os
from pathlib import Path
from prefect.settings import get_current_settings
from moorage.adapters.prefect import api_login
from moorage.adapters.prefect.home_server import find_login, running_server
from moorage.adapters.secrets import has_api
home = Path(os.environ["MOORAGE_HOME"])
server, before = running_server(home), dict(os.environ)
api_login.prepare_kept_server(server, home)
assert dict(os.environ) == before
assert not has_api()
api_login.context.root_settings_context = None  # the settings are not read again
api_login.use_kept_server(server)
found = get_current_settings().api
assert (found.url, found.auth_string.get_secret_value()) == (server.url, find_login(home))
assert os.environ["PREFECT_API_URL"] == server.url
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose Prefect database is made already; its server ends with the test."""
    for name, value in prepared_home(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.chdir(foreign_modules(tmp_path / "project"))
    yield tmp_path / "home"
    stop_server(tmp_path / "home")


def status_of(server: RunningServer, home: Path, path: str) -> int:
    user, _, password = (find_login(home) or "").partition(":")
    return httpx.get(f"{server.url}{path}", auth=(user, password)).status_code


def started(home: Path) -> str:
    done = subprocess.run(
        [*INTERPRETER, "-c", STARTER, str(home)], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_of_commands_that_begin_at_once_one_starts_it_and_all_use_it(home: Path) -> None:
    with ThreadPoolExecutor(12) as pool:
        answers = set(pool.map(started, [home] * 12))
    assert len(answers) == 1
    server = RunningServer.model_validate_json(answers.pop())
    assert running_server(home) == server == kept_server(home, 3600)
    assert psutil.Process(server.process.pid).ppid() == 1 or _is_adopted(server)
    assert status_of(server, home, "/admin/version") == 200
    assert httpx.get(f"{server.url}/admin/version").status_code == 401
    assert (home / "api" / "log").stat().st_mode & 0o077 == 0
    os.kill(server.process.pid, signal.SIGKILL)
    until(lambda: running_server(home) is None)
    after = kept_server(home, 3600)
    assert after.process != server.process
    assert stop_server(home) == after
    assert (running_server(home), stop_server(home)) == (None, None)
    assert not psutil.pid_exists(after.process.pid) or _is_over(after)


def test_it_ends_once_nobody_has_asked_it_for_a_while(home: Path) -> None:
    server = kept_server(home, 3)
    assert status_of(server, home, "/admin/version") == 200
    until(lambda: not server.process.is_running)


def test_another_one_is_not_started_beside_one_that_is_on_its_way(home: Path) -> None:
    starter = subprocess.Popen([*INTERPRETER, "-c", STARTER, str(home)])
    until(lambda: home_server._recorded(home) is not None)
    starter.kill()
    starter.wait()
    begun = home_server._recorded(home)
    assert kept_server(home, 3600) == begun


def test_it_takes_another_port_where_its_own_is_taken_before_it_listens(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = home_server._free_port()
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        ports = iter((stranger.getsockname()[1], free))
        monkeypatch.setattr(home_server, "_free_port", lambda: next(ports))
        assert urlsplit(kept_server(home, 3600).url).port == free


def test_serve_replaces_one_that_is_starting_only_once_its_command_has_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOORAGE_HOME", str(home))
    monkeypatch.setattr(serve, "OwnServer", Mock())
    monkeypatch.setattr(serve, "_wait", Mock())
    starter = subprocess.Popen([*INTERPRETER, "-c", STARTER, str(home)])
    begun = until(lambda: home_server._recorded(home))
    with serve._own_server("127.0.0.1", home_server._free_port(), ""):
        assert starter.wait() == 0, "its command was served"
        assert not begun.process.is_running


def test_serve_does_not_end_one_that_it_cannot_replace(home: Path) -> None:
    program = [sys.executable, "-c", "input()"]
    with (
        socket.create_server(("127.0.0.1", 0)) as stranger,
        subprocess.Popen(program, stdin=subprocess.PIPE) as process,
    ):
        kept = home_server.record_server(home, "http://127.0.0.1:1/api", process.pid, kept=True)
        with pytest.raises(Failure, match="cannot listen"):
            serve._end_kept(home, *stranger.getsockname())
        assert kept.process.is_running


def test_where_it_cannot_start_its_last_line_says_why(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_DATABASE_CONNECTION_URL", "nonsense://")
    with pytest.raises(Exception, match=r"did not start: .*nonsense"):
        kept_server(home, 3600)
    assert "nonsense" in (home / "api" / "log").read_text()
    assert running_server(home) is None


def _is_adopted(server: RunningServer) -> bool:
    """Whether its parent is not the command that started it: a container has another first one."""
    parent: Any = psutil.Process(server.process.pid).parent()
    return parent is None or STARTER not in parent.cmdline()


def _is_over(server: RunningServer) -> bool:
    return psutil.Process(server.process.pid).status() == psutil.STATUS_ZOMBIE


def test_settings_that_are_read_before_a_fork_take_effect_when_the_server_is_used(
    home: Path,
) -> None:
    kept_server(home, 3600)
    environment = {**os.environ, "MOORAGE_HOME": str(home)}
    subprocess.run([*INTERPRETER, "-c", PREPARED], env=environment, check=True)
