from __future__ import annotations

from typing import Any

import pytest

from moorage.common.refusal import Reason, Refusal
from moorage.placement.parallelism import (
    ParallelSizes,
    Shape,
    Topology,
    multi_host_topology,
)

DP, MP, NESTED = Shape.DP_ONLY, Shape.MP_ONLY, Shape.NESTED


def laid_out(accelerators: list[int], **sizes: Any) -> Topology:
    return multi_host_topology(accelerators, ParallelSizes(**sizes))


@pytest.mark.parametrize(
    ("accelerators", "sizes", "shape", "tensor", "data_local", "start_ranks"),
    [
        ([8], {}, DP, 8, (1,), (0,)),
        ([8, 8], {}, DP, 8, (1, 1), (0, 1)),
        ([8, 8, 8], {}, DP, 8, (1, 1, 1), (0, 1, 2)),
        ([8, 4], {}, DP, 4, (2, 1), (0, 2)),
        ([6, 4], {}, DP, 2, (3, 2), (0, 3)),
        ([3, 2], {}, DP, 1, (3, 2), (0, 3)),
        ([1, 1, 1, 1], {}, DP, 1, (1, 1, 1, 1), (0, 1, 2, 3)),
        ([8, 8], {"tensor": 8}, DP, 8, (1, 1), (0, 1)),
        ([8, 8], {"tensor": 4}, DP, 4, (2, 2), (0, 2)),
        ([8, 8], {"tensor": 2}, DP, 2, (4, 4), (0, 4)),
        ([8, 8], {"tensor": 1}, DP, 1, (8, 8), (0, 8)),
        ([8, 8], {"tensor": 3}, DP, 3, (2, 2), (0, 2)),
        ([8, 4], {"tensor": 4}, DP, 4, (2, 1), (0, 2)),
        ([4, 8, 2], {"tensor": 2}, DP, 2, (2, 4, 1), (0, 2, 6)),
        ([8, 8], {"tensor": 4, "data": 4}, DP, 4, (2, 2), (0, 2)),
        ([8, 8], {"tensor": 4, "data": 4, "data_local": 2}, DP, 4, (2, 2), (0, 2)),
        ([8, 8], {"tensor": 4, "pipeline": 2}, DP, 4, (1, 1), (0, 1)),
        ([8, 8], {"tensor": 2, "pipeline": 2}, DP, 2, (2, 2), (0, 2)),
        ([8, 8], {"tensor": 2, "prefill": 2}, DP, 2, (2, 2), (0, 2)),
        ([8, 8], {"tensor": 2, "pipeline": 2, "prefill": 2}, DP, 2, (1, 1), (0, 1)),
        ([8, 8], {"data": 2}, DP, 8, (1, 1), (0, 1)),
        ([8, 8], {"data": 4}, DP, 4, (2, 2), (0, 2)),
        ([8, 8], {"data": 4, "pipeline": 2}, DP, 2, (2, 2), (0, 2)),
        ([8, 8], {"data": 2, "prefill": 4}, DP, 2, (1, 1), (0, 1)),
        ([8, 4], {"data": 3}, DP, 4, (2, 1), (0, 2)),
        ([8, 8], {"data_local": 1}, DP, 8, (1, 1), (0, 1)),
        ([8, 8], {"tensor": 8, "pipeline": 2}, MP, 8, (1, 1), (0, 0)),
        ([8, 8], {"tensor": 16}, MP, 16, (1, 1), (0, 0)),
        ([8, 8], {"data": 1}, MP, 16, (1, 1), (0, 0)),
        ([8, 8], {"tensor": 16, "data_local": 1}, MP, 16, (1, 1), (0, 0)),
        ([8, 8], {"pipeline": 2}, MP, 8, (1, 1), (0, 0)),
        ([8, 8], {"prefill": 2}, MP, 8, (1, 1), (0, 0)),
        ([1, 1, 1], {"pipeline": 3}, MP, 1, (1, 1, 1), (0, 0, 0)),
        ([4, 4, 4, 4], {"tensor": 8, "pipeline": 2}, MP, 8, (1,) * 4, (0,) * 4),
        ([8, 8, 8, 8], {"tensor": 16}, NESTED, 16, (1,) * 4, (0, 0, 1, 1)),
        ([8, 8, 8, 8], {"tensor": 8, "pipeline": 2}, NESTED, 8, (1,) * 4, (0, 0, 1, 1)),
        ([8, 8, 8, 8], {"tensor": 16, "data": 2}, NESTED, 16, (1,) * 4, (0, 0, 1, 1)),
        ([8, 8, 8, 8], {"data": 2}, NESTED, 16, (1,) * 4, (0, 0, 1, 1)),
        ([2] * 6, {"tensor": 4}, NESTED, 4, (1,) * 6, (0, 0, 1, 1, 2, 2)),
        ([2] * 6, {"tensor": 6}, NESTED, 6, (1,) * 6, (0, 0, 0, 1, 1, 1)),
    ],
)
def test_a_group_is_laid_out_over_hosts(
    accelerators: list[int],
    sizes: dict[str, int],
    shape: Shape,
    tensor: int,
    data_local: tuple[int, ...],
    start_ranks: tuple[int, ...],
) -> None:
    got = laid_out(accelerators, **sizes)
    assert (got.shape, got.tensor, got.data_local, got.start_ranks) == (
        *(shape, tensor, data_local, start_ranks),
    )


@pytest.mark.parametrize(
    ("accelerators", "sizes", "data", "span"),
    [
        ([8, 4], {}, 3, 1),
        ([8, 8], {"tensor": 16}, 1, 2),
        ([8, 8, 8, 8], {"tensor": 16}, 2, 2),
        ([2] * 6, {"tensor": 6}, 2, 3),
    ],
)
def test_it_says_how_many_ranks_and_hosts_a_rank(
    accelerators: list[int], sizes: dict[str, int], data: int, span: int
) -> None:
    got = laid_out(accelerators, **sizes)
    assert (got.data, got.hosts_per_rank) == (data, span)


def test_an_open_pipeline_is_one_stage() -> None:
    assert laid_out([8, 8]).pipeline == 1
    assert laid_out([8, 8], tensor=8, pipeline=2).pipeline == 2
    assert laid_out([8, 8], tensor=2, pipeline=2).pipeline == 2


@pytest.mark.parametrize(
    ("accelerators", "sizes", "reason"),
    [
        ([8, 8], {"tensor": 0}, "tensor parallel size 0 is not positive"),
        ([8, 8], {"pipeline": 0}, "pipeline parallel size 0 is not positive"),
        ([8, 8], {"prefill": -1}, "prefill parallel size -1 is not positive"),
        ([8, 8], {"data": 0}, "data parallel size 0 is not positive"),
        ([8, 8], {"data_local": 0}, "data-local parallel size 0 is not positive"),
        ([8, 0], {}, "at least one accelerator"),
        ([], {}, "at least one accelerator"),
        ([8, 8], {"data": 3}, "16 accelerators cannot be split into 3 equal parts"),
        ([8, 8], {"data": 2, "pipeline": 3}, "cannot be split into 6"),
        ([8, 8], {"tensor": 8, "data": 3}, "data parallel size 3 is asked for, the hosts take 2"),
        ([8, 8], {"tensor": 4, "data": 2}, "data parallel size 2 is asked for, the hosts take 4"),
        (
            [8, 8],
            {"tensor": 4, "data_local": 1},
            "1 local ranks are asked for, the hosts take 2, 2",
        ),
        ([8, 4], {"data_local": 2}, "2 local ranks are asked for, the hosts take 2, 1"),
        ([8, 4], {"tensor": 8}, "have to be equal; they give 8, 4"),
        ([8, 8], {"tensor": 12}, "a rank of 12 accelerators does not fill hosts of 8"),
        ([8, 8, 8], {"tensor": 16}, "3 hosts cannot be split into ranks of 2 hosts"),
        ([8, 8], {"tensor": 16, "data": 2}, "data parallel size 2 is asked for, the hosts take 1"),
        ([8] * 4, {"tensor": 16, "data_local": 2}, "2 local ranks are asked for, but a rank spans"),
    ],
)
def test_what_vllm_cannot_lay_out_is_refused_with_its_reason(
    accelerators: list[int], sizes: dict[str, int], reason: str
) -> None:
    with pytest.raises(Refusal) as caught:
        multi_host_topology(accelerators, ParallelSizes(**sizes))
    assert caught.value.reason is Reason.TOPOLOGY
    assert reason in caught.value.note
