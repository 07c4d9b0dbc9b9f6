"""SGLang's wheel without its dependencies, fetched once."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

VERSION = "0.5.23"
FETCH = ("-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:")
PLATFORM = ("--platform", "manylinux_2_34_x86_64", "--python-version", "3.11")
CACHE = Path.home() / ".cache" / "moorage" / "wheels"
FETCH_SECONDS = 300


@cache
def unpacked_wheel() -> Path:
    """Where the wheel is unpacked; skips where it cannot be fetched."""
    folder = CACHE / f"sglang-{VERSION}"
    if folder.exists():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as place:
        done = subprocess.run(
            [sys.executable, *FETCH, *PLATFORM, "-d", place, f"sglang=={VERSION}"],
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            check=False,
        )
        wheels = list(Path(place).glob("*.whl"))
        if done.returncode or not wheels:
            pytest.skip(f"the wheel of sglang {VERSION} was not fetched: {done.stderr[-300:]}")
        unpacked = Path(place) / "unpacked"
        zipfile.ZipFile(wheels[0]).extractall(unpacked)
        # Another test process may have been faster.
        with suppress(OSError):
            unpacked.rename(folder)
    return folder


def parse(lines: list[list[str]]) -> list[str]:
    """What SGLang's own parser says of each line of arguments; empty = it takes it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.engines.sglang.parse_lines", unpacked_wheel()],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    answers: list[str] = json.loads(done.stdout)
    return answers
