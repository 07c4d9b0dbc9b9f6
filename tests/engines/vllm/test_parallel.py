from __future__ import annotations

from typing import Any

import pytest

from moorage.engines.vllm.context import BASELINE
from moorage.engines.vllm.parallel import parallel_flags
from tests.engines.vllm.contexts import a_context, hosts, line

RAY = {"policy": BASELINE}


@pytest.mark.parametrize(
    ("changes", "words", "flags"),
    [
        ({}, [], ""),
        ({"tensor": 4}, [], "--tensor-parallel-size 4"),
        (
            {"tensor": 2, "pipeline": 2},
            [],
            "--tensor-parallel-size 2 --pipeline-parallel-size 2",
        ),
        ({"tensor": 4}, ["--tensor-parallel-size=2"], ""),
        ({"tensor": 4}, ["--tensor_parallel_size", "2"], ""),
        ({"tensor": 4}, ["-tp", "2"], ""),
        ({"tensor": 4}, ["-pp=2"], ""),
        ({"tensor": 4}, ["-dp=2"], ""),
        ({"tensor": 4}, ["--data-parallel-size-local=2"], "--tensor-parallel-size 4"),
        (
            {"members": hosts(4, 4), **RAY},
            [],
            "--tensor-parallel-size 4 --pipeline-parallel-size 2",
        ),
        (
            {"members": hosts(4, 2), **RAY},
            [],
            "--tensor-parallel-size 1 --pipeline-parallel-size 6",
        ),
        ({"members": hosts(4, 4), **RAY}, ["-dp=2"], ""),
        (
            {"members": hosts(4, 4), "position": 1},
            [],
            "--tensor-parallel-size 4 --data-parallel-size 2 --data-parallel-size-local 1",
        ),
        ({"members": hosts(4, 4)}, ["--tensor-parallel-size=8"], ""),
        (
            {"members": hosts(4, 4, 4, 4)},
            ["-tp=4", "-pp=2"],
            "--data-parallel-size 2 --data-parallel-size-local 1",
        ),
        (
            {"members": hosts(2, 4), "position": 1},
            ["-dp=3"],
            "--tensor-parallel-size 2 --data-parallel-size-local 2",
        ),
    ],
)
def test_sizes_follow_from_the_placement_unless_the_user_states_one(
    changes: dict[str, Any], words: list[str], flags: str
) -> None:
    assert line(parallel_flags(a_context(*words, **changes))) == flags
