"""The login of a home's server: who may read it, and to whom it is sent."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect.settings import (
    PREFECT_API_AUTH_STRING,
    PREFECT_API_URL,
    temporary_settings,
)

from moorage.adapters.files.safe_files import write_private
from moorage.adapters.prefect.api_login import sign_in
from moorage.adapters.prefect.home_server import (
    find_login,
    forget_server,
    login_for,
    provide_login,
    record_server,
    running_server,
    stop_server,
)
from moorage.common.failures import Cause, Failure

IS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="gives a file to another user")
NOBODY = 65534


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def port() -> Iterator[int]:
    """A port at which this process listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


class TestFile:
    def test_only_its_owner_reads_it_whatever_the_umask(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            login, is_new = provide_login(tmp_path)
        finally:
            os.umask(before)
        assert (is_new, find_login(tmp_path)) == (True, login)
        assert (mode(tmp_path / "api"), mode(tmp_path / "api" / "login")) == (0o700, 0o600)
        assert [path.name for path in (tmp_path / "api").iterdir()] == ["login"]

    def test_each_home_has_another_and_keeps_it(self, tmp_path: Path) -> None:
        logins = {provide_login(tmp_path / name)[0] for name in "abcabc"}
        assert len(logins) == 3

    def test_whoever_was_quicker_wins(self, tmp_path: Path) -> None:
        path = tmp_path / "api" / "login"
        assert write_private(path, "a:first", over=False)
        assert not write_private(path, "a:second", over=False)
        assert find_login(tmp_path) == "a:first"

    def test_a_wide_folder_of_ours_is_narrowed(self, tmp_path: Path) -> None:
        (tmp_path / "api").mkdir(mode=0o777)
        provide_login(tmp_path)
        assert mode(tmp_path / "api") == 0o700

    @pytest.mark.parametrize("wide", [0o604, 0o640, 0o620, 0o602, 0o777])
    def test_one_that_others_can_use_is_refused(self, tmp_path: Path, wide: int) -> None:
        login, _ = provide_login(tmp_path)
        (tmp_path / "api" / "login").chmod(wide)
        for take in (find_login, provide_login):
            with pytest.raises(Failure, match="is open to others") as caught:
                take(tmp_path)
            assert caught.value.cause is Cause.BAD_SETTING
            assert login.partition(":")[2] not in str(caught.value)

    @IS_ROOT
    @pytest.mark.parametrize("planted", ["login", "."])
    def test_one_that_another_user_made_is_refused(self, tmp_path: Path, planted: str) -> None:
        (tmp_path / "api").mkdir()
        write_private(tmp_path / "api" / "login", "evil:known", over=True)
        os.chown(tmp_path / "api" / planted, NOBODY, NOBODY)
        if planted == ".":
            (tmp_path / "api" / "login").unlink()
        with pytest.raises(Failure, match=r"belongs to the user|not a folder of this user"):
            provide_login(tmp_path)

    @pytest.mark.parametrize("link", ["api", "api/login"])
    def test_no_link_is_followed(self, tmp_path: Path, link: str) -> None:
        elsewhere = tmp_path / "elsewhere"
        provide_login(elsewhere)
        home = tmp_path / "home"
        (home / link).parent.mkdir(parents=True)
        (home / link).symlink_to(elsewhere / link)
        (elsewhere / "api" / "login").unlink()
        with pytest.raises(Failure):
            provide_login(home)
        assert not (elsewhere / "api" / "login").exists()

    @pytest.mark.parametrize("content", ["", "nothing", ":", "a:", ":b", "a b:c", "a:b\nc:d"])
    def test_what_is_no_login_is_refused(self, tmp_path: Path, content: str) -> None:
        write_private(tmp_path / "api" / "login", content, over=True)
        with pytest.raises(Failure, match="user:password"):
            find_login(tmp_path)

    def test_a_pipe_in_its_place_holds_up_nobody(self, tmp_path: Path) -> None:
        (tmp_path / "api").mkdir()
        os.mkfifo(tmp_path / "api" / "login", 0o600)
        with pytest.raises(Failure, match="is not a file"):
            find_login(tmp_path)


class TestSent:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
    def test_to_the_server_of_this_home_by_its_own_address(
        self, tmp_path: Path, port: int, host: str
    ) -> None:
        login, _ = provide_login(tmp_path)
        own = f"http://127.0.0.1:{port}/api"
        record_server(tmp_path, own, os.getpid())
        assert login_for(tmp_path, f"http://{host}:{port}/api/") == (login, own)
        assert mode(tmp_path / "api" / "server") == 0o600

    @pytest.mark.parametrize(
        "url",
        [
            "http://127.0.0.1:1/api",
            "http://10.0.0.7:{port}/api",
            "http://localhost.evil.example:{port}/api",
            "http://127.0.0.1:{port}@evil.example/api",
            "https://127.0.0.1:{port}/api",
            "http://127.0.0.1:{port}/api/other",
            "http://evil.example/?http://127.0.0.1:{port}/api",
        ],
    )
    def test_to_no_other(self, tmp_path: Path, port: int, url: str) -> None:
        provide_login(tmp_path)
        record_server(tmp_path, f"http://127.0.0.1:{port}/api", os.getpid())
        assert login_for(tmp_path, url.format(port=port)) is None

    def test_not_when_it_has_ended(self, tmp_path: Path, port: int) -> None:
        provide_login(tmp_path)
        url = f"http://127.0.0.1:{port}/api"
        record_server(tmp_path, url, os.getpid())
        forget_server(tmp_path)
        assert login_for(tmp_path, url) is None

    def test_not_when_it_was_killed_and_somebody_else_listens(
        self, tmp_path: Path, port: int
    ) -> None:
        provide_login(tmp_path)
        url = f"http://127.0.0.1:{port}/api"
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
            record_server(tmp_path, url, process.pid)
            assert login_for(tmp_path, url) is None, "it lives, and does not listen"
            process.kill()
        assert login_for(tmp_path, url) is None

    def test_what_the_user_has_set_comes_first(
        self, tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        provide_login(tmp_path)
        url = f"http://127.0.0.1:{port}/api"
        record_server(tmp_path, url, os.getpid())
        monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", "mine:set")
        with temporary_settings({PREFECT_API_URL: url, PREFECT_API_AUTH_STRING: "mine:set"}):
            sign_in()
        assert os.environ["PREFECT_API_AUTH_STRING"] == "mine:set"


class TestStop:
    def test_it_ends_what_commands_keep(self, tmp_path: Path) -> None:
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
            begun = record_server(tmp_path, "http://127.0.0.1:1/api", process.pid, kept=True)
            assert stop_server(tmp_path) == begun
            assert not begun.process.is_running
        assert stop_server(tmp_path) is None

    def test_it_leaves_that_of_serve_alone(self, tmp_path: Path, port: int) -> None:
        own = record_server(tmp_path, f"http://127.0.0.1:{port}/api", os.getpid())
        assert stop_server(tmp_path) == own == running_server(tmp_path)
