"""One case in a process of its own: limited, watched, and judged by what is left of it."""

from __future__ import annotations

import os
import resource
import select
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from urllib.parse import quote

from moorage.adapters.engines.engine_http import trusted_authorities
from moorage.adapters.engines.schema_store import shipped_schemas
from moorage.cli.app import TARGETS, app
from moorage.common.failures import ExitCode
from tests.fuzz import chains
from tests.fuzz.targets import Case

CPU_SECONDS = 10
MEMORY = 1 << 30
KNOWN = {int(code) for code in ExitCode} - {int(ExitCode.INTERNAL)}
TOUCHED = ("claims", "releases", "locks", "workloads")
LATE = (
    "transformers.models.auto.configuration_auto",
    "transformers.models.llama.configuration_llama",
    "moorage.adapters.ledger.migrations",
    "anyio._backends._asyncio",
)
"""What commands import once they need it: seconds of each one's time."""

REPOSITORY = Path(__file__).parents[2]


def prepare() -> None:
    """Import and read what every case needs, before the first fork."""
    for name in LATE:
        import_module(name)
    for name, target in TARGETS.items():
        target.load(name)
    trusted_authorities()
    shipped_schemas()
    assert threading.active_count() == 1, "what has threads cannot be forked"


@dataclass(frozen=True)
class Verdict:
    """How a case ended.

    Attributes:
        code: Exit code; below 0 the signal that ended it.
        faults: What is wrong with that; empty = nothing.
    """

    code: int
    faults: list[str]


def judged(case: Case, folder: Path, server: str, seconds: float, *, whole: bool) -> Verdict:
    """Run a case, and judge how it ended.

    Args:
        case: What is run.
        folder: Where its files are.
        server: Address of the server that gives its answers.
        seconds: How long it may take.
        whole: Whether the real command line is started, not a fork of this process.
    """
    (folder / "answers").mkdir()
    for path, body in case.answers.items():
        (folder / "answers" / quote(path, safe="")).write_bytes(body)
    begun = time.monotonic()
    child = os.fork()
    if not child:
        _become(case, folder, f"{server}/{folder.name}", whole=whole)
    ended = _ended(child, seconds)
    if not ended:
        os.killpg(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    found = [] if ended else [f"no end after {time.monotonic() - begun:.0f} s"]
    code = os.waitstatus_to_exitcode(status)
    return Verdict(code, found + _faults(code, used.ru_maxrss, folder, child))


def _become(case: Case, folder: Path, server: str, *, whole: bool) -> None:
    """The child's life: it never returns."""
    os.setsid()
    os.chdir(folder)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _surroundings(server, folder)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 2 * MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    code = 1
    try:
        if whole:
            words = [sys.executable, "-m", "moorage.cli", *case.arguments]
            code = subprocess.run(
                words, env={**os.environ, "PYTHONPATH": str(REPOSITORY)}
            ).returncode
        elif case.arguments[0] == "chain":
            chains.run(*case.arguments[1:])
            code = 0
        else:
            app(case.arguments)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    with suppress(BaseException):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code & 0xFF)


def _surroundings(server: str, folder: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("MOORAGE_", "PREFECT_", "HF_"))]:
        del os.environ[name]
    os.environ |= {
        "HOME": str(folder / "user"),
        "PWD": str(folder),
        "MOORAGE_HOME": str(folder / "home"),
        "MOORAGE_HUB_ENDPOINT": server,
        "MOORAGE_SERVER": "temporary",
        "FUZZ_SERVER": server,
        "DOCKER_HOST": "unix:///nowhere.sock",
        "hf-team": "a-token",
    }


def _ended(child: int, seconds: float) -> bool:
    watched = os.pidfd_open(child)
    try:
        return bool(select.select([watched], [], [], seconds)[0])
    finally:
        os.close(watched)


def _faults(code: int, kibibytes: int, folder: Path, session: int) -> list[str]:
    found = []
    texts = [(folder / name).read_text(errors="replace") for name in ("stdout", "stderr")]
    if any("Traceback (most recent call last)" in text for text in texts):
        last = max(texts, key=lambda text: "Traceback" in text).strip().rpartition("\n")[2]
        found.append(f"a traceback: {last[:200]}")
    if code not in KNOWN:
        found.append(f"exit code {code}")
    if kibibytes * 1024 > MEMORY:
        found.append(f"{kibibytes >> 10} MiB of memory")
    if left := _left(session):
        found.append(f"processes are left: {left}")
    return found + _kept(folder / "home" / "ledger.db") + _started(folder / "home")


def _left(session: int) -> list[str]:
    """Processes of the session that the case had for itself; they are killed."""
    left = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                left.append((entry / "comm").read_text().strip())
                os.kill(int(entry.name), signal.SIGKILL)
    return left


def _kept(ledger: Path) -> list[str]:
    if not ledger.exists():
        return []
    with closing(sqlite3.connect(ledger)) as database:
        counts = {
            name: database.execute(f"select count(*) from {name}").fetchone()[0] for name in TOUCHED
        }
    return [f"{count} rows of {name} in the ledger" for name, count in counts.items() if count]


def _started(home: Path) -> list[str]:
    run = home / "run"
    return ["something was started"] if run.is_dir() and any(run.iterdir()) else []
