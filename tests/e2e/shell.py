"""A shell for tests, in which `moorage` is a fork of the process that has imported everything."""

from __future__ import annotations

import json
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.fork_server import server_for
from tests.waiting import PATIENCE_SECONDS

MOORAGE = """#!{python} -IS
import json, os, socket, sys
with socket.create_connection(("127.0.0.1", {port})) as server, server.makefile("rw") as lines:
    print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]), file=lines, flush=True)
    code, out, errors = json.loads(lines.readline())
sys.stderr.write(errors)
sys.stderr.flush()
sys.stdout.write(out)
sys.exit(code)
"""
"""The program `moorage` of the shell; `python -m moorage.cli` takes twenty times as long."""

MARK = "-- end of a block --"


def outputs(blocks: Sequence[str], folder: Path, environment: Mapping[str, str]) -> list[str]:
    """What each block prints, on both streams, in one shell; the first command that fails ends it.

    Args:
        folder: Where the shell starts; the program `moorage` is made there.
        environment: All variables of the shell.
    """
    script = "".join(f"{block}\necho '{MARK}'\n" for block in blocks)
    with _commands() as port:
        program = folder / "bin" / "moorage"
        program.parent.mkdir()
        program.write_text(MOORAGE.format(python=sys.executable, port=port))
        program.chmod(0o755)
        path = f"{program.parent}:{Path(sys.executable).parent}:{environment['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
            env={**environment, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stdout
    return done.stdout.split(f"{MARK}\n")[:-1]


@contextmanager
def _commands() -> Iterator[int]:
    """The port on which commands are taken."""
    with socketserver.TCPServer(("127.0.0.1", 0), _Command) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


class _Command(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        words, environment, folder = json.loads(self.rfile.readline())
        server = server_for(environment)
        done = server.run(words, environment, PATIENCE_SECONDS, folder=Path(folder))
        answer = json.dumps([done.returncode, done.stdout, done.stderr])
        self.wfile.write(f"{answer}\n".encode())
