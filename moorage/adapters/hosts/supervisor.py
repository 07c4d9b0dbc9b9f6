"""Runs one engine: records its process and exit status, and ends all its processes.

A program of the standard library alone, started in a session of its own as
`python supervisor.py STATE LOG PROGRAM [ARG ...]`. It outlives the flow that started it.

The engine's environment, which holds its secrets, comes as JSON on standard input. It is not part
of this process's own environment, which others can read.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path


def main(state_path: str, log_path: str, argv: list[str]) -> int:
    """Run the engine until it ends."""
    # Signals go to the whole group. This process ignores them and waits for the engine.
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGINT, lambda *_: None)
    state = Path(state_path)
    with Path(log_path).open("ab", buffering=0) as log:
        try:
            engine = subprocess.Popen(
                argv,
                env=json.load(sys.stdin.buffer),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "no environment came"
            log.write(f"{argv[0]}: {why}\n".encode())
            _write(state, {"pid": 0, "started_at": 0, "exit_code": 127})
            return 127
    known = {"pid": engine.pid, "started_at": process_state(engine.pid)[1], "session": os.getsid(0)}
    _write(state, {**known, "exit_code": None})
    code = engine.wait()
    _write(state, {**known, "exit_code": code})
    _end_session()
    return 0


def process_state(pid: int) -> tuple[str, int]:
    """State of a process (empty = none), and its start in clock ticks since the boot."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0
    return fields[0], int(fields[19])


def is_alive(pid: int, started_at: int) -> bool:
    """Whether a process lives; one that waits to be reaped does not."""
    state, start = process_state(pid)
    return state not in ("", "Z", "X") and start == started_at


def _write(path: Path, content: dict[str, object]) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(content))
    draft.replace(path)


def _end_session() -> None:
    own = os.getpid()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != own:
            try:
                if os.getsid(int(entry.name)) == os.getsid(0):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                continue


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
