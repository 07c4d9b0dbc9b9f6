"""Engines in environments of their own: whole or not there, whatever interrupts them (D2)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from moorage.adapters.engines.installations import Installations, Installer
from moorage.adapters.hosts.local_host import installed_program
from moorage.common.failures import Cause, Failure
from moorage.engines.packages import PACKAGES, packages_of
from moorage.engines.registry import ENGINES
from moorage.spec import EngineName

LLAMA = ENGINES[EngineName.LLAMA_CPP]
TESTED = PACKAGES[EngineName.LLAMA_CPP].version
KILLS = 6
"""How often an installation is killed."""

INSTALL = """
import sys
from pathlib import Path
from moorage.adapters.engines.installations import Installer
from moorage.engines.registry import ENGINES
print("begins", flush=True)
Installer(Path(sys.argv[1]), ENGINES["llama.cpp"], "", lambda line: None).run()
"""


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages, which pip takes instead of an index: xllamacpp in two versions."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version in (TESTED, "1.0"):
        _wheel(folder, "xllamacpp", version)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("MOORAGE_HOME", str(tmp_path))
    return folder


def _wheel(folder: Path, name: str, version: str) -> None:
    info = f"{name}-{version}.dist-info"
    tags = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": tags,
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, content in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(path, content)


def install(home: Path, version: str = "") -> list[str]:
    """Install it; the lines that were told."""
    lines: list[str] = []
    Installer(home / "engines", LLAMA, version, lines.append).run()
    return lines


def begin(folder: Path) -> subprocess.Popen[str]:
    """An installation by a process with a group of its own, once it has imported everything."""
    running = subprocess.Popen(
        [sys.executable, "-c", INSTALL, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout
    assert running.stdout.readline() == "begins\n"
    return running


def test_it_is_installed_once_and_found_by_deploys(tmp_path: Path) -> None:
    assert any("Successfully installed" in line for line in install(tmp_path))
    assert install(tmp_path) == []
    program = installed_program(LLAMA)
    assert program
    assert program.version == TESTED
    assert Path(program.path).is_relative_to(tmp_path / "engines" / "llama.cpp" / TESTED)
    (there,) = Installations(tmp_path / "engines").versions(EngineName.LLAMA_CPP)
    assert there.bytes > 1000
    code = "import xllamacpp, moorage.adapters.engines.llama_server; print(xllamacpp.__file__)"
    python = Path(program.path).with_name("python")
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tmp_path))


def test_another_version_takes_over_and_the_old_one_stays(tmp_path: Path) -> None:
    install(tmp_path)
    install(tmp_path, "1.0")
    installed = Installations(tmp_path / "engines")
    now = installed.current(EngineName.LLAMA_CPP)
    assert now
    assert now.version == "1.0"
    assert {one.version for one in installed.versions(EngineName.LLAMA_CPP)} == {TESTED, "1.0"}
    assert install(tmp_path) == []  # the old one is whole, and is chosen again
    assert _current(installed) == TESTED


def test_without_its_current_version_the_newest_of_the_others_is_started(tmp_path: Path) -> None:
    install(tmp_path)
    install(tmp_path, "1.0")
    installed = Installations(tmp_path / "engines")
    assert installed.remove(EngineName.LLAMA_CPP, "1.0")
    assert not installed.remove(EngineName.LLAMA_CPP, "1.0")
    assert _current(installed) == TESTED
    assert installed.remove(EngineName.LLAMA_CPP, TESTED)
    assert _current(installed) == ""


def _current(installed: Installations) -> str:
    found = installed.current(EngineName.LLAMA_CPP)
    return found.version if found else ""


def test_what_cannot_be_installed_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="No matching distribution") as failed:
        install(tmp_path, "9.9")
    assert failed.value.cause == Cause.ENGINE_NOT_INSTALLED
    assert not (tmp_path / "engines" / "llama.cpp" / "9.9").exists()
    assert installed_program(LLAMA) != Installations(tmp_path / "engines").program(LLAMA.name)


@pytest.mark.parametrize("engine", [EngineName.TRITON, EngineName.CUSTOM])
def test_some_engines_have_no_packages(engine: EngineName) -> None:
    with pytest.raises(Failure, match="is not installed from packages"):
        packages_of(engine)


@pytest.mark.process
def test_killed_at_any_moment_it_is_whole_or_not_there(tmp_path: Path) -> None:
    folder = tmp_path / "engines"
    installed = Installations(folder)
    whole, begun = begin(tmp_path / "whole"), time.monotonic()
    whole.communicate()
    length = time.monotonic() - begun
    for moment in (random.uniform(0, 1.2 * length) for _ in range(KILLS)):
        running = begin(folder)
        time.sleep(moment)
        # With the pip that it has started, as when the machine fails; or alone, and pip goes on.
        if random.random() < 0.5:
            os.killpg(running.pid, signal.SIGKILL)
        running.kill()
        running.communicate()
        if found := installed.current(EngineName.LLAMA_CPP):
            assert Path(found.path).is_file(), f"killed after {moment:.2f} of {length:.2f} s"
            assert installed.remove(EngineName.LLAMA_CPP, found.version)  # the next begins again
    lines = install(tmp_path)  # it waits for what a killed one has left running
    (there,) = installed.versions(EngineName.LLAMA_CPP)
    assert installed.current(EngineName.LLAMA_CPP) == there
    python = Path(there.path).with_name("python")
    subprocess.run([python, "-c", "import xllamacpp"], check=True)
    assert not installed.is_busy(EngineName.LLAMA_CPP)
    assert lines == [] or "Successfully installed" in lines[-1]  # or killed right at the end


@pytest.mark.process
def test_while_it_is_installed_others_see_that(tmp_path: Path) -> None:
    folder = tmp_path / "engines"
    running = begin(folder)
    installed = Installations(folder)
    seen = False
    while running.poll() is None:
        seen = seen or installed.is_busy(EngineName.LLAMA_CPP)
    assert seen
    assert running.returncode == 0
    assert not installed.is_busy(EngineName.LLAMA_CPP)
