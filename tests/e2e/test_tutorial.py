"""The tutorial does what it says: its commands run as they are written, and print what it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.adapters.prefect.home_server import running_server, stop_server
from tests.e2e.shell import outputs
from tests.e2e.workplace import REPOSITORY, Workplace

pytestmark = [pytest.mark.process, pytest.mark.server]

PAGE = REPOSITORY / "docs" / "tutorial.md"
STEP = re.compile(r"^```sh\n(.*?)^```\n(?:\n^```text\n(.*?)^```\n)?", re.S | re.M)
"""Commands, and what the page shows of their output."""

ELLIPSIS = "..."
NUMBERS = re.compile(r"\b[0-9a-f]{12}\b|(?<!\w)\d+(\.\d+)*")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workplace]:
    """The folder of the tutorial, without a server, and with ports that no other test takes."""
    for name in ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "MOORAGE_SERVER"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "tutorial"
    (folder / "deployments").mkdir(parents=True)
    (folder / "home").mkdir()
    (tmp_path / "scripts").symlink_to(REPOSITORY / "scripts")
    place = Workplace(folder, folder / "models" / "tiny", {})
    (folder / "fleet.yaml").rename(folder / "deployments" / "fleet.yaml")
    yield place
    stop_server(place.home)
    place.close()


def test_the_tutorial_runs_as_it_is_written(place: Workplace) -> None:
    steps = STEP.findall(PAGE.read_text())
    printed = outputs([commands for commands, _ in steps], place.folder.parent, place.environment)
    for (commands, shown), output in zip(steps, printed, strict=True):
        assert not shown or is_shown(shown, output), f"{commands}\nprints\n{output}\nnot\n{shown}"
    assert not place.folder.exists()
    assert not place.processes()
    assert running_server(place.home) is None


@pytest.mark.parametrize(
    ("shown", "output", "same"),
    [
        ("tiny.v1 serves\n", "tiny.v1   serves\n\n", True),
        ("tiny.v1 serves\n", "tiny.v2 serves\n", False),
        ("verify 0.94 s\n", "verify 12 s\n", True),
        ("local-2bfb1278e32f, 1 files", "local-000000000000, 2 files", True),
        ("http://127.0.0.1:40000/v1\n", "http://127.0.0.1:20040/v1\n", True),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nb\nc\n", False),
        ("a ...\n", "a (b)\n", True),
        ("a\n", "a\nb\n", False),
    ],
)
def test_what_is_shown_is_compared_without_numbers(shown: str, output: str, same: bool) -> None:
    assert is_shown(shown, output) == same


def is_shown(shown: str, output: str) -> bool:
    """Whether an output is what the page shows: numbers differ, and `...` stands for anything."""
    parts = (re.escape(_words(part)) for part in shown.split(ELLIPSIS))
    return bool(re.fullmatch(".*".join(parts), _words(output), re.S))


def _words(text: str) -> str:
    return " ".join(NUMBERS.sub("0", text).split())
