from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.server import serve
from tests.fuzz.targets import TARGETS, Case
from tests.fuzz.worker import REPOSITORY, judged

IN_CI = tuple(TARGETS)
"""Targets that CI runs a few cases of each."""

CASES, SEED = 10, 12
PATIENCE = 60.0
"""Seconds: CI's machines do other things too, and only CPU time is told from a hang there."""


@pytest.mark.process
def test_no_case_ends_otherwise_than_documented(tmp_path: Path) -> None:
    targets = [word for name in IN_CI for word in ("--target", name)]
    numbers = ["--cases", str(CASES), "--seed", str(SEED), "--hang", str(PATIENCE)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *targets, *numbers, "--keep", str(tmp_path)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout.startswith(f"seed {SEED}\n")
    assert done.stdout.endswith(" 0 faults\n")


@pytest.mark.parametrize("name", TARGETS)
def test_the_same_seed_makes_the_same_case(name: str, tmp_path: Path) -> None:
    made = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        case = TARGETS[name](Random("a seed"), folder)
        made.append((case, {file.name: _seen(file) for file in sorted(folder.rglob("*"))}))
    assert made[0] == made[1]


def _seen(file: Path) -> bytes | int:
    return file.read_bytes() if file.is_file() else file.lstat().st_mode


FAULTS: list[tuple[str, str]] = [
    ("raise ZeroDivisionError", "a traceback: ZeroDivisionError; exit code 1"),
    ("raise SystemExit(9)", "exit code 9"),
    ("import time; time.sleep(60)", "no end after"),
    ("x = bytearray(1200 << 20)", "MiB of memory"),
    ("x = bytearray(1 << 40)", "MemoryError"),
    ("import subprocess as s; s.Popen(['sleep', '60'])", "processes are left"),
    ("import os; os.makedirs('home/run/x')", "something was started"),
]


@pytest.mark.process
def test_a_fault_is_seen(tmp_path: Path) -> None:
    """In a process of its own: what forks has no threads."""
    cases = [code for code, _ in FAULTS]
    program = f"from tests.fuzz.test_fuzz import judge_all; judge_all({cases!r}, {str(tmp_path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(FAULTS), done.stderr
    for line, (code, reason) in zip(lines, FAULTS, strict=True):
        assert reason in line, code


def judge_all(codes: Sequence[str], folder: str) -> None:
    """Run each code where a command would run, and print the faults."""
    from tests.fuzz import chains  # noqa: PLC0415  (it is changed here)

    server, address = serve(Path(folder))
    for number, code in enumerate(codes):
        chains.CHAINS["code"] = lambda code=code: exec(code)
        place = Path(folder) / str(number)
        place.mkdir()
        seconds = 2 if "time.sleep" in code else PATIENCE
        verdict = judged(Case(["chain", "code"]), place, address, seconds, whole=False)
        print("; ".join(verdict.faults))
    os.kill(server, 9)
