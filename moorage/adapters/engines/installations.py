"""Engines that moorage installed on this machine, each version in its own virtual environment.

The layout, below the folder `engines` of the home:

    NAME/VERSION/                  the environment
    NAME/VERSION/installed.json    written last: without it the environment is not used
    NAME/current                   a link to the version that deploys start

An installation and the pip that it starts hold the lock of the engine: if moorage is killed, the
next installation waits until that pip has exited, and starts over.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from moorage.adapters.system.process import INTERPRETER
from moorage.common.failures import Cause, Failure
from moorage.common.printable import printable
from moorage.common.values import Value
from moorage.engines.base import Engine
from moorage.engines.packages import packages_of
from moorage.inventory.snapshot import Program
from moorage.spec import EngineName

RECORD, CURRENT, LOCK = "installed.json", "current", ".lock"
WAIT_SECONDS = 0.5
SHOWN = 100
"""Characters shown of each line of pip's output."""

ENVIRONMENT = frozenset({"PATH", "HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"})
PREFIXES = ("PIP_", "UV_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http", "no_proxy")
"""Prefixes of further variables that pip sees; none can hold a secret of moorage."""

LAUNCHER = """#!{python}
from {module} import main

main()
"""

Tell = Callable[[str], None]
"""Receives lines about the progress."""


class Installation(Value):
    """A complete installation of one version.

    Attributes:
        path: Path of its program.
        bytes: Size of its files.
    """

    engine: EngineName
    version: str
    path: str
    bytes: int
    installed_at: datetime


class Installations:
    """The engines installed below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def current(self, engine: EngineName) -> Installation | None:
        """The version that deploys start; None = no version is installed."""
        return _read(self._folder / engine / CURRENT)

    def program(self, engine: EngineName) -> Program | None:
        """The program of the current version."""
        found = self.current(engine)
        return Program(engine=engine, path=found.path, version=found.version) if found else None

    def versions(self, engine: EngineName) -> tuple[Installation, ...]:
        """All complete installations of an engine, oldest first."""
        places = (self._folder / engine).glob(f"*/{RECORD}")
        found = (_read(place.parent) for place in places if place.parent.name != CURRENT)
        return tuple(sorted(filter(None, found), key=lambda one: one.installed_at))

    def is_busy(self, engine: EngineName) -> bool:
        """Whether a version is being installed or removed now."""
        try:
            with _locked(self._folder / engine, None):
                return False
        except BlockingIOError:
            return True
        except OSError:
            return False

    def remove(self, engine: EngineName, version: str) -> bool:
        """Remove a version, its record before its files; False = it was not installed.

        If deploys start this version, they start the newest of the others then.
        """
        place = self._folder / engine / version
        with _locked(place.parent, lambda _line: None):
            if _read(place) is None:
                return False
            current = place.parent / CURRENT
            if current.is_symlink() and current.readlink() == Path(version):
                others = [one.version for one in self.versions(engine) if one.version != version]
                if others:
                    _make_current(place.parent / others[-1])
                else:
                    current.unlink()
            (place / RECORD).unlink()
            shutil.rmtree(place)
            return True


class Installer:
    """Installs one version of an engine; another thread may call `stop`."""

    def __init__(self, folder: Path, engine: Engine, version: str, tell: Tell) -> None:
        self._packages, self._engine, self._tell = packages_of(engine.name), engine, tell
        self._version = version or self._packages.version or engine.default_version
        self._own = folder / engine.name
        self._place = self._own / self._version
        self._child: subprocess.Popen[str] | None = None
        self._stopped = False

    def run(self) -> Installation:
        """Install the version if necessary, and make it the one that deploys start.

        Raises:
            Failure: `ENGINE_NOT_INSTALLED` with the end of pip's output.
        """
        with _locked(self._own, self._tell) as lock:
            found = _read(self._place)
            if found is None:
                shutil.rmtree(self._place, ignore_errors=True)  # left by a killed installation
                try:
                    found = self._make(lock)
                except BaseException:
                    shutil.rmtree(self._place, ignore_errors=True)
                    raise
            _make_current(self._place)
            return found

    def stop(self) -> None:
        """Stop the installation; `run` then fails."""
        self._stopped = True
        if self._child:
            self._child.terminate()

    def _make(self, lock: int) -> Installation:
        python = str(self._place / "bin" / "python")
        wanted = self._packages.requirements(self._version)
        ours = importlib.util.find_spec("pip") is not None  # if so, the environment needs no copy
        options = ["--without-pip"] if ours else []
        pip = (
            [*INTERPRETER, "-m", "pip", "--python", python] if ours else [python, "-P", "-m", "pip"]
        )
        self._do(lock, *INTERPRETER, "-m", "venv", *options, str(self._place))
        self._do(lock, *pip, "install", "--no-input", "--progress-bar=off", *wanted)
        program = self._place / "bin" / self._engine.program
        if self._packages.launcher:
            _write_launcher(program, python, self._packages.launcher)
        if not program.is_file():
            raise self._failure(f"the packages have no program {program.name}")
        sizes = (path.lstat().st_size for path in self._place.rglob("*"))
        made = Installation(
            engine=self._engine.name,
            version=self._version,
            path=str(program),
            bytes=sum(sizes),
            installed_at=datetime.now(UTC),
        )
        _replace(self._place / RECORD, made.model_dump_json())
        return made

    def _do(self, lock: int, *command: str) -> None:
        """Run a program that holds the lock until it exits, and report its output lines."""
        if self._stopped:
            raise self._failure("it was stopped")
        lines: list[str] = []
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=_environment(),
            pass_fds=(lock,),
        ) as self._child:
            assert self._child.stdout
            for line in self._child.stdout:
                lines.append(printable(line.rstrip())[:SHOWN])
                self._tell(lines[-1])
        if self._child.returncode != 0:
            raise self._failure("\n".join(lines[-20:]))

    def _failure(self, detail: str) -> Failure:
        why = "it was stopped" if self._stopped else detail
        named = f"{self._packages.name} {self._version}"
        return Failure(
            Cause.ENGINE_NOT_INSTALLED,
            f"{named}: {why}",
            suggestion="See pip's lines above. PIP_INDEX_URL and its like say where packages come"
            " from; `--version` chooses another one.",
        )


def _make_current(place: Path) -> None:
    new = place.parent / f".{CURRENT}-{os.getpid()}"
    with suppress(FileNotFoundError):
        new.unlink()
    new.symlink_to(place.name)
    new.replace(place.parent / CURRENT)


def _read(place: Path) -> Installation | None:
    try:
        return Installation.model_validate_json((place / RECORD).read_bytes())
    except (OSError, ValidationError):
        return None


@contextmanager
def _locked(folder: Path, tell: Tell | None) -> Iterator[int]:
    """Hold the lock of an engine's folder; without `tell`, raise if another process holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        announced = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if tell is None:
                    raise
                if not announced:
                    tell("waits for another installation")
                    announced = True
            time.sleep(WAIT_SECONDS)
        yield lock
    finally:
        os.close(lock)


def _replace(path: Path, content: str) -> None:
    new = path.with_suffix(".new")
    with new.open("w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _write_launcher(program: Path, python: str, module: str) -> None:
    """Write a program that runs a module of moorage, for packages that have no program."""
    ours = Path(__file__).resolve().parents[3]
    purelib = Path(sysconfig.get_path("purelib"))
    site = next((program.parents[1] / "lib").glob("python*/site-packages"))
    (site / "moorage.pth").write_text(f"{ours}\n{purelib}\n")
    program.write_text(LAUNCHER.format(python=python, module=module))
    program.chmod(0o755)


def _environment() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in ENVIRONMENT or name.startswith(PREFIXES)
    }
