"""Sizes of the groups within SGLang's tensor-parallel ranks."""

from __future__ import annotations

import re

import pytest

from moorage.common.failures import Cause, Failure
from moorage.placement.propose import NoFit
from tests.engines.sglang.shapes import with_sizes, words


@pytest.mark.parametrize(
    ("args", "hosts", "gpus", "placement", "tensor"),
    [
        ("--attn-dp-size 4", 1, 4, {}, "4"),
        ("--ep-size 4", 1, 4, {}, "4"),
        ("--attention-data-parallel-size 2 --ep 8", 1, 8, {}, "8"),
        ("--attn-dp-size 2", 1, 8, {"accelerators": 8}, "8"),
        ("--data-parallel-size 4 --enable-dp-attention", 1, 4, {}, "4"),
        ("--data-parallel-size 2 --ep-size 2", 1, 4, {}, "2"),
        ("--pipeline-parallel-size 2 --attn-dp-size 2", 1, 4, {}, "2"),
        ("--tensor-parallel-size 16 --data-parallel-size 16 --enable-dp-attention", 2, 8, {}, "16"),
        ("--attn-dp-size 16", 2, 8, {}, "16"),
        ("--attn-dp-size 4", 2, 8, {}, "8"),
    ],
)
def test_groups_of_ranks_divide_the_tensor_parallel_size(
    args: str, hosts: int, gpus: int, placement: dict[str, int], tensor: str
) -> None:
    containers = with_sizes(args, hosts, gpus, None, **placement)

    assert len(containers) == hosts
    for line in map(words, containers):
        assert line[line.index("--tensor-parallel-size") + 1] == tensor


@pytest.mark.parametrize(
    ("args", "placement", "message"),
    [
        (
            "--tensor-parallel-size 2 --attn-dp-size 4",
            {},
            "engine.args: --attn-dp-size 4 does not divide 2 tensor-parallel ranks",
        ),
        (
            "--tensor-parallel-size 2 --data-parallel-size 4 --enable-dp-attention",
            {},
            "engine.args: --data-parallel-size 4 does not divide 2 tensor-parallel ranks",
        ),
        (
            "--ep-size 4",
            {"accelerators": 2},
            "placement.accelerators: 2 are no multiple of --ep-size 4 in engine.args",
        ),
        ("--ep-size 0", {}, "engine.args: --ep-size 0 must be positive"),
        (
            "--attn-dp-size 2 --data-parallel-size 2",
            {},
            "--data-parallel-size: SGLang runs no data-parallel copies with --attn-dp-size",
        ),
    ],
)
def test_groups_that_do_not_divide_it_are_refused(
    args: str, placement: dict[str, int], message: str
) -> None:
    with pytest.raises(Failure, match=re.escape(message)) as refused:
        with_sizes(args, 1, 8, None, **placement)

    assert refused.value.cause == Cause.BAD_SPEC
    assert refused.value.suggestion


def test_a_host_with_fewer_accelerators_than_groups_is_refused() -> None:
    with pytest.raises(NoFit, match="4 accelerators requested, 2 x"):
        with_sizes("--attn-dp-size 4", 1, 2)
