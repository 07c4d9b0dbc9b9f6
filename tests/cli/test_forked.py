"""Commands that are forked off a process which has imported what they need."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from moorage.adapters.ledger.locks import Owner
from moorage.adapters.prefect.home_server import RunningServer
from moorage.cli import fork_server
from moorage.cli.fork_server import (
    LOCK,
    NOBODY,
    fork_server_process,
    start_fork_server,
    stop_fork_server,
)
from moorage.cli.forked import LOST
from tests.waiting import until

pytestmark = pytest.mark.process

SPEC = "name: tiny\nsource: file://nowhere\n"
IMPORT = "typer"
"""What a command imports that is not forked."""

WITHOUT_IMPORTS = """
import sys
from moorage.cli import fork_server
fork_server._import_all = lambda _home: {}
folder, server, lock, idle_seconds = sys.argv[1:]
fork_server.main(fork_server.Path(folder), int(server), int(lock), float(idle_seconds))
"""
"""Forks at once, after something else than the imports."""


class Home:
    """A home with a process that forks its commands."""

    def __init__(self, folder: Path, *program: str, idle_seconds: float | None = None) -> None:
        self.folder, self.api = folder, folder / "home" / "api"
        self.api.mkdir(parents=True, mode=0o700)
        own = {"MOORAGE_HOME": str(folder / "home"), "MOORAGE_FORKED": "1"}
        self.environment = {**os.environ, **own}
        self.errors = (folder / "errors").open("a+")
        self.prefect_server = subprocess.Popen(["sleep", "1000"])
        with (self.api / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            server = self.prefect_server.pid if idle_seconds is None else NOBODY
            words = map(str, (folder / "home", server, lock.fileno(), idle_seconds or 0))
            self.forking = subprocess.Popen(
                [sys.executable, *(program or ("-m", "moorage.cli.fork_server")), *words],
                env=self.environment,
                pass_fds=[lock.fileno()],
            )
        until(lambda: (self.api / "commands").exists())

    def begin(
        self, *words: str, variables: Mapping[str, str] = {}, **more: Any
    ) -> subprocess.Popen[str]:
        self.errors.truncate(0)
        return subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "moorage.cli", *words],
            env={**self.environment, **variables},
            **{"cwd": self.folder, "stdin": subprocess.DEVNULL, **more},
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def run(self, *words: str, **more: Any) -> tuple[int, str, bool]:
        """Exit status and output of a command, and whether it was forked."""
        command = self.begin(*words, **more)
        output, _ = command.communicate()
        self.errors.seek(0)
        shown, imported = list[str](), list[str]()
        for line in self.errors:
            (imported if line.startswith("import time:") else shown).append(line)
        return command.returncode, output + "".join(shown), IMPORT not in "".join(imported)

    def commands(self) -> list[psutil.Process]:
        return psutil.Process(self.forking.pid).children()

    def close(self) -> None:
        self.prefect_server.kill()
        self.prefect_server.wait()
        assert self.forking.wait(20) in (0, -signal.SIGKILL)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    made = Home(tmp_path_factory.mktemp("forked"))
    (made.folder / "spec.yaml").write_text(SPEC)
    yield made
    made.close()
    assert not (made.api / "commands").exists()


@pytest.mark.parametrize(
    "words",
    [
        *(["status"], ["status", "--json"], ["--help"], ["plan", "--help"], ["stats"]),
        *(["plan", "spec.yaml", "--json"], ["plan", "none.yaml", "--json"], ["show", "tiny"]),
    ],
    ids=" ".join,
)
def test_it_answers_as_in_a_process_of_its_own(home: Home, words: list[str]) -> None:
    code, output, forked = home.run(*words)
    assert forked
    assert (code, output, False) == home.run(*words, variables={"MOORAGE_FORKED": "0"})


def test_it_has_the_callers_folder_variables_umask_and_input(home: Home, tmp_path: Path) -> None:
    def strict() -> None:
        os.umask(0o077)

    words = ("init", "tiny", "hf://org/model")
    code, output, forked = home.run(*words, cwd=tmp_path, preexec_fn=strict)
    assert (code, forked) == (0, True), output
    (written,) = tmp_path.rglob("tiny.yaml")
    assert written.stat().st_mode & 0o777 == 0o600

    elsewhere = tmp_path / "elsewhere"
    elsewhere.symlink_to(home.folder / "home")
    code, output, _ = home.run("key", "list", variables={"MOORAGE_HOME": str(elsewhere)})
    assert code == 0, output

    with (home.folder / "spec.yaml").open() as spec:
        code, output, forked = home.run("plan", "-", stdin=spec)
    assert forked
    assert "nowhere" in output


def test_another_folder_where_prefect_has_other_settings_is_not_forked(
    home: Home, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["prefect"]\n')
    assert home.run("--version", cwd=tmp_path)[::2] == (0, True)
    (tmp_path / "prefect.toml").write_text('api.url = "http://127.0.0.1:1/api"\n')
    assert home.run("--version", cwd=tmp_path)[::2] == (0, False)


def fewer_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (500, 500))


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"variables": {"HF_HUB_OFFLINE": "1"}}, id="read when modules are imported"),
        pytest.param({"variables": {"PREFECT_API_URL": "http://127.0.0.1:1/api"}}, id="of Prefect"),
        pytest.param({"preexec_fn": fewer_files}, id="another limit"),
        pytest.param({"preexec_fn": lambda: os.nice(3)}, id="another priority"),
        pytest.param({"variables": {"MOORAGE_HOME": "/nowhere/at/all"}}, id="another home"),
    ],
)
def test_what_the_process_cannot_be_for_is_not_forked(home: Home, more: dict[str, Any]) -> None:
    code, output, forked = home.run("--version", **more)
    assert (code, forked) == (0, False)
    assert output.startswith("moorage ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_as_it_ends_its_caller(home: Home, number: signal.Signals) -> None:
    ended = []
    for variables in ({}, {"MOORAGE_FORKED": "0"}):
        command = home.begin("plan", "-", variables=variables, stdin=subprocess.PIPE)
        await_reading(home, command)
        command.send_signal(number)
        command.communicate()
        ended.append(command.returncode)
        until(lambda: not home.commands())
    assert ended[0] == ended[1]


def await_reading(home: Home, command: subprocess.Popen[str]) -> None:
    """Wait until a command, forked or not, reads its standard input, which is a pipe."""
    until(lambda: any(map(_reads, (*home.commands(), psutil.Process(command.pid)))))


def _reads(process: psutil.Process) -> bool:
    return "pipe_read" in Path(f"/proc/{process.pid}/wchan").read_text()


def test_a_caller_that_is_killed_takes_it_along(home: Home) -> None:
    command = home.begin("plan", "-", stdin=subprocess.PIPE)
    until(home.commands)
    command.kill()
    until(lambda: not home.commands())
    command.communicate()


def test_a_pause_of_the_caller_is_one_of_the_command(home: Home) -> None:
    command = home.begin("plan", "-", stdin=subprocess.PIPE)
    until(home.commands)
    (forked,) = home.commands()
    await_reading(home, command)
    command.send_signal(signal.SIGTSTP)
    until(lambda: forked.status() == psutil.Process(command.pid).status() == psutil.STATUS_STOPPED)
    command.send_signal(signal.SIGCONT)
    until(lambda: forked.status() != psutil.STATUS_STOPPED)
    command.communicate(SPEC)
    assert command.returncode not in (0, LOST)


def test_where_the_forking_process_is_killed_the_command_goes_on(tmp_path: Path) -> None:
    home = Home(tmp_path, "-c", WITHOUT_IMPORTS.format("None"))
    try:
        command = home.begin("plan", "-", "--json", stdin=subprocess.PIPE)
        until(home.commands)
        await_reading(home, command)
        home.forking.kill()
        output, _ = command.communicate(SPEC)
        assert command.returncode == LOST
        assert json.loads(output)["error"]["cause"]
        assert home.run("--version")[::2] == (0, False)
    finally:
        home.close()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_it_is_started_once_and_only_where_flows_run_on_a_lasting_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    kept = RunningServer(url="http://127.0.0.1:1/api", process=Owner.of(os.getpid()))
    monkeypatch.setattr(fork_server, "running_server", lambda _: None)
    start_fork_server(tmp_path, os.environ, None)
    assert fork_server_process(tmp_path) == 0

    monkeypatch.setattr(fork_server, "running_server", lambda _: None if elsewhere else kept)
    for _ in range(3):
        start_fork_server(tmp_path, os.environ, 60 if elsewhere else None)
    # A process has no command line for a moment after its start.
    (started,) = until(
        lambda: [
            one for one in psutil.Process().children() if str(tmp_path) in " ".join(one.cmdline())
        ]
    )
    assert fork_server_process(tmp_path) == started.pid
    stop_fork_server(tmp_path)
    started.wait()
    assert fork_server_process(tmp_path) == 0


def test_one_for_a_server_elsewhere_ends_when_nobody_comes(tmp_path: Path) -> None:
    home = Home(tmp_path, "-c", WITHOUT_IMPORTS.format("None"), idle_seconds=3)
    try:
        command = home.begin("plan", "-", stdin=subprocess.PIPE)
        (forked,) = until(home.commands)
        await_reading(home, command)
        command.communicate(SPEC)
        assert home.forking.wait(20) == 0
        assert not forked.is_running()
    finally:
        home.close()


@pytest.mark.parametrize(
    ("words", "on_terminal", "variables", "starts"),
    [
        (["engines"], True, {}, True),
        (["engines"], False, {}, False),
        (["--version"], True, {}, False),
        (["server", "stop"], True, {}, False),
        (["engines"], True, {"MOORAGE_FORKED": "0"}, False),
        (["engines"], True, {"MOORAGE_SERVER": "temporary"}, False),
    ],
)
def test_a_slow_command_on_a_terminal_has_later_ones_forked(
    tmp_path: Path, words: list[str], on_terminal: bool, variables: dict[str, str], starts: bool
) -> None:
    own = {"MOORAGE_HOME": str(tmp_path), "MOORAGE_FORKED": "1", "MOORAGE_SERVER": "kept"}
    terminal, theirs = pty.openpty()
    try:
        subprocess.run(
            [sys.executable, "-m", "moorage.cli", *words],
            env={**os.environ, **own, **variables},
            stdout=theirs if on_terminal else subprocess.PIPE,
            check=True,
        )
        assert bool(fork_server_process(tmp_path)) == starts
    finally:
        stop_fork_server(tmp_path)
        os.close(theirs)
        os.close(terminal)
    until(lambda: not fork_server_process(tmp_path))


def test_one_for_a_server_elsewhere_ends_when_its_home_is_gone(tmp_path: Path) -> None:
    home = Home(tmp_path, "-c", WITHOUT_IMPORTS.format("None"), idle_seconds=1000)
    try:
        (tmp_path / "home").rename(tmp_path / "gone")
        assert home.forking.wait(20) == 0
    finally:
        home.close()


def test_one_whose_code_has_changed_since_ends(tmp_path: Path) -> None:
    changed = "setattr(fork_server, '_code', lambda: ())"
    home = Home(tmp_path, "-c", WITHOUT_IMPORTS.format(changed))
    try:
        assert home.run("--version")[::2] == (0, False)
        assert home.forking.wait(20) == 0
    finally:
        home.close()
