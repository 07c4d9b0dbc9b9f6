"""A tunnel opens in time or says why not, whatever the user's SSH is set to."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.adapters import ssh
from moorage.adapters.ssh import Tunnel, Tunnels
from moorage.common.failures import Cause, Failure
from moorage.inventory.access import Access

BOX = Access(address="ssh://box")
SOCKET = """
import socket, sys
place = sys.argv[sys.argv.index("-L") + 1].partition(":")[0]
socket.socket(socket.AF_UNIX).bind(place)
"""

Stand = Callable[[str], None]


@pytest.fixture
def instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    """Let a shell script stand for `ssh`; `listen` in it makes the tunnel's socket."""

    def stand(script: str) -> None:
        program = tmp_path / "ssh"
        python = shutil.which("python3")
        (tmp_path / "listen.py").write_text(SOCKET)
        head = f'#!/bin/sh\nlisten() {{ {python} {tmp_path}/listen.py "$@"; }}\n'
        program.write_text(f"{head}{script}\n")
        program.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return stand


def test_a_shell_that_greets_does_not_keep_a_tunnel_from_opening(instead: Stand) -> None:
    instead('listen "$@"; echo Welcome to box; echo "  open for all"; echo open; exec cat')
    tunnel = Tunnel(BOX)
    assert tunnel.is_open
    tunnel.close()
    assert not tunnel.socket.exists()


def test_a_shell_that_says_nothing_is_not_waited_for(
    instead: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "OPEN_SECONDS", 0.3)
    instead("exec sleep 20")
    began = time.monotonic()
    with pytest.raises(Failure, match="the shell there timed out") as caught:
        Tunnel(BOX)
    assert caught.value.cause is Cause.RUNTIME_UNAVAILABLE
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("socket", ["/dev/null", "/no/such.sock"])
def test_the_users_shell_needs_no_grammar_but_that_of_a_command(
    instead: Stand, socket: str
) -> None:
    """It may be fish or csh: the stand-in knows words in quotes alone."""
    words = "import os, shlex, sys; at = shlex.split(sys.argv[-1]); os.execvp(at[1], at[1:])"
    instead(f'listen "$@"; exec {shutil.which("python3")} -c "{words}" "$@"')
    access = Access(address=f"ssh://box{socket}")
    if socket == "/dev/null":
        Tunnel(access).close()
        return
    with pytest.raises(Failure, match=f"{socket} is not there or not writable"):
        Tunnel(access)


def test_a_host_that_prints_errors_for_ever_fills_no_disk_and_no_memory(instead: Stand) -> None:
    instead('listen "$@"; yes error >&2 & echo open; exec cat')
    tunnel = Tunnel(BOX)
    time.sleep(0.2)
    sizes = [path.stat().st_size for path in tunnel.socket.parent.iterdir()]
    assert tunnel.is_open
    tunnel.close()
    assert sum(sizes) < 100_000
    instead("yes error | head -c 5000000 >&2; echo Permission denied >&2; exit 1")
    with pytest.raises(Failure, match="Permission denied") as caught:
        Tunnel(BOX)
    assert caught.value.cause is Cause.HOST_UNAUTHORIZED


def test_a_tunnel_without_its_socket_is_none(instead: Stand) -> None:
    instead("echo 'unix_listener: cannot bind to path' >&2; echo open; exec cat")
    with pytest.raises(Failure, match="cannot bind to path"):
        Tunnel(BOX)


def test_a_connection_that_ends_says_its_last_word(instead: Stand) -> None:
    instead("echo 'box: Permission denied (publickey).' >&2; exit 255")
    with pytest.raises(Failure, match="Permission denied") as caught:
        Tunnel(BOX)
    assert caught.value.cause is Cause.HOST_UNAUTHORIZED


@pytest.mark.parametrize(
    ("key", "named"), [("GPU_KEY", "in secret GPU_KEY"), ("", "/home/me/.ssh/id_ed25519")]
)
def test_a_key_that_cannot_be_read_is_told_from_one_that_is_refused(
    instead: Stand, monkeypatch: pytest.MonkeyPatch, key: str, named: str
) -> None:
    monkeypatch.setenv("GPU_KEY", "garbage")
    file = "/proc/1/fd/3" if key else named
    instead(
        f"""echo 'Load key "{file}": error in libcrypto' >&2
        echo 'box: Permission denied (publickey).' >&2; exit 255"""
    )
    with pytest.raises(Failure) as caught:
        Tunnel(Access(address="ssh://box", key=key))
    assert caught.value.cause is Cause.HOST_UNAUTHORIZED
    words = f"ssh://box: the private key {named} cannot be read: error in libcrypto"
    assert caught.value.detail == words


@pytest.mark.skipif(not shutil.which("ssh"), reason="OpenSSH is not installed")
def test_a_command_of_the_users_configuration_is_not_in_the_way(
    instead: Stand, tmp_path: Path
) -> None:
    """`RemoteCommand tmux` is for people."""
    config = tmp_path / "config"
    config.write_text("Host box\n HostName 127.0.0.1\n Port 1\n RemoteCommand tmux\n")
    instead(f'exec {shutil.which("ssh")} -F {config} "$@"')
    with pytest.raises(Failure, match="Connection refused"):
        Tunnel(BOX)


def test_forwards_of_the_users_configuration_may_fail(instead: Stand) -> None:
    """Another session to the same host holds their ports already."""
    held = "*ExitOnForwardFailure=yes*) echo Could not request local forwarding. >&2; exit 255;;"
    instead(f'case "$*" in {held} esac; listen "$@"; echo open; exec cat')
    tunnel = Tunnel(BOX)
    assert tunnel.is_open
    tunnel.close()


def test_all_who_wait_for_a_dead_host_learn_it_at_once(instead: Stand, tmp_path: Path) -> None:
    """Each would wait for its own time-out else, one after the other."""
    instead(f"echo x >> {tmp_path}/tries; sleep 1; echo 'connect: timed out' >&2; exit 255")
    tunnels, failures = Tunnels(), list[str]()

    def ask() -> None:
        with pytest.raises(Failure) as caught:
            tunnels.socket(BOX)
        failures.append(caught.value.detail)

    asking = [threading.Thread(target=ask) for _ in range(6)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert failures == ["ssh://box: connect: timed out"] * 6
    assert (tmp_path / "tries").read_text() == "x\n"
    ask()  # later it is tried again
    assert (tmp_path / "tries").read_text() == "x\nx\n"


@pytest.mark.parametrize(("file", "alone"), [("/etc/moorage/known_hosts", True), ("", False)])
def test_a_file_of_known_hosts_is_the_only_one(instead: Stand, file: str, alone: bool) -> None:
    """The machine's own would let hosts pass that are not in it."""
    instead('echo "$@" >&2; exit 255')
    with pytest.raises(Failure) as caught:
        Tunnel(Access(address="ssh://box", known_hosts=file))
    assert (f"UserKnownHostsFile={file}" in caught.value.detail) == alone
    assert ("GlobalKnownHostsFile=/dev/null" in caught.value.detail) == alone
