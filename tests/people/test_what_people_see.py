"""The page `docs/what-people-see.md` is a recording: each command shows what stands there."""

from __future__ import annotations

import re

import pytest

from tests.e2e.shell import forked_moorage
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.flows.test_server import CHAIN
from tests.people.terminal import COLUMNS, shown

PAGE = REPOSITORY / "docs" / "what-people-see.md"
STEP = re.compile(r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```\n", re.S | re.M)
"""Commands, and what the terminal shows."""

TYPES = re.compile(r"# types: (.*)")
"""What a person types at the questions of a command."""

HOME = "/home/ann/work"
"""What the folder is called on the page."""

DURATION = re.compile(r"\d+ min \d+ s|\d+(\.\d+)? s\b")
DIGEST, NUMBER = re.compile(r"[0-9a-f]{8,}(-[0-9a-f]{4,})*"), re.compile(r"\d+(\.\d+)*")


@pytest.mark.process
@pytest.mark.server
def test_each_command_shows_what_the_page_says(
    desk: Workplace, request: pytest.FixtureRequest
) -> None:
    page = PAGE.read_text()
    with forked_moorage(desk.folder / "bin", desk.environment) as environment:

        def record(step: re.Match[str]) -> str:
            commands, _ = step.groups()
            typed = [line for found in TYPES.findall(commands) for line in found.split(", ")]
            screen = shown(commands, desk.folder, environment, typed=typed, called=HOME)
            return f"```sh\n{commands}```\n\n```text\n{screen}```\n"

        recorded = STEP.sub(record, page)
    if request.config.getoption("--regenerate-golden"):
        PAGE.write_text(recorded)
    for now, before in zip(STEP.findall(recorded), STEP.findall(PAGE.read_text()), strict=True):
        assert comparable(now[1]) == comparable(before[1]), f"{now[0]}\n{now[1]}\nnot\n{before[1]}"


def test_nothing_on_the_page_is_wider_than_the_terminal() -> None:
    recorded = "".join(text for _, text in STEP.findall(PAGE.read_text()))
    assert max(map(len, recorded.splitlines())) == COLUMNS


def test_every_picture_on_the_page_is_taken() -> None:
    taken = (REPOSITORY / "tests" / "flows" / "ui" / "test_prefect_ui.py").read_text()
    pictures = re.findall(r"`([\w-]+)\.png`", PAGE.read_text())
    assert len(pictures) > 8
    for name in pictures:
        deployment = name.removeprefix("form-").rpartition("-")[0]
        names = (
            *(f'picture("{name}"', f'("{name}", "', f'/{deployment}"', f'f"{name}-'),
            f'f"form-{deployment}{{',
        )
        assert any(one in taken for one in names), name


def test_the_graph_on_the_page_is_the_one_that_a_run_has() -> None:
    edges = "".join(f"{edge.strip()}\n" for edge in CHAIN)
    assert f"```text\n{edges}```\n" in PAGE.read_text(), edges


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("verify 0.94 s\n", "verify    2 min 05 s\n", True),
        ("http://127.0.0.\n1:40000/v1", "http://127.0.0.1:\n4000/v1", True),
        ("local-2bfb1278e32f", "local-000000000000", True),
        ("tiny.v1 serves", "tiny.v2 serves", True),
        ("serves", "is down", False),
        ("a\n", "a\nb\n", False),
    ],
)
def test_only_numbers_and_places_of_line_ends_may_differ(one: str, other: str, same: bool) -> None:
    assert (comparable(one) == comparable(other)) is same


def comparable(screen: str) -> str:
    """What a terminal shows, without what differs from run to run."""
    text = "".join(DURATION.sub("0s", screen).split())
    return NUMBER.sub("0", DIGEST.sub("0", text))
