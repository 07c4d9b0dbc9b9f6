from __future__ import annotations

from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.file_order import pytest_collection_modifyitems

FILES: dict[str, list[tuple[str, ...]]] = {
    "unit_a": [(), ()],
    "waits_long": [("server",), ("server",), ("process", "server")],
    "whole": [(), ("docker", "fleet")],
    "unit_b": [()],
    "waits": [("docker",), ()],
    "whole_long": [("vllm",), ("vllm",)],
}


def ordered() -> list[tuple[str, int]]:
    items: list[Any] = [
        SimpleNamespace(
            path=Path(f"{name}.py"),
            at=(name, at),
            iter_markers=lambda marks=marks: [SimpleNamespace(name=mark) for mark in marks],
        )
        for name, tests in FILES.items()
        for at, marks in enumerate(tests)
    ]
    pytest_collection_modifyitems(items)
    return [item.at for item in items]


def test_dear_files_come_first_and_those_that_take_a_machine_stand_apart() -> None:
    files = [name for name, _ in groupby(ordered(), key=lambda test: test[0])]
    assert files == ["waits_long", "whole_long", "waits", "whole", "unit_a", "unit_b"]


def test_the_tests_of_a_file_keep_their_order() -> None:
    for name, found in groupby(ordered(), key=lambda test: test[0]):
        assert [at for _, at in found] == list(range(len(FILES[name])))
