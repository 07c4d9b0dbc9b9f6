"""The order of test files, and the folders whose tests run in one process.

Expensive files come first, so that cheap ones fill the end of a parallel run. Needs xdist's option
`--no-loadscope-reorder`: by default xdist runs the files with most tests first.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

GROUPS = (("vllm", "fleet", "ui"), ("docker", "server", "process"))
"""Marks of tests that use a whole machine, and of tests that mostly wait."""

TOGETHER = ("tests/flows/", "tests/team/")
"""Folders whose tests share a Prefect server with all its services: only one server starts, not one
per process."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files of all groups first, and interleave the groups evenly.

    So two tests that use the whole machine seldom run at once. In a group, files with more marked
    tests come first. The tests of a file keep their order.
    """
    marked: dict[str, list[int]] = defaultdict(list)
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        marked[str(item.path)] += [at for at, group in enumerate(GROUPS) if marks & set(group)][:1]
    places = _places(marked)
    items.sort(key=lambda item: (places[str(item.path)], str(item.path)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """Give each folder of `TOGETHER` to one process."""
    return _Scheduling(config, log)


class _Scheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return next((folder for folder in TOGETHER if file.startswith(folder)), str(file))


def _places(marked: dict[str, list[int]]) -> dict[str, float]:
    places = dict.fromkeys(marked, 1.0)
    for group in range(len(GROUPS)):
        files = [path for path, found in marked.items() if found and min(found) == group]
        files.sort(key=lambda path: (-len(marked[path]), path))
        places |= {path: at / len(files) for at, path in enumerate(files)}
    return places
