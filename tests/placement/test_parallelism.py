from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason, Refusal
from moorage.placement.parallelism import (
    Parallelism,
    ParallelSizes,
    Shape,
    Topology,
    multi_host_topology,
    stated_parallelism,
)
from moorage.spec.arguments import parse_entries
from tests.builders import a_host, a_profile, a_spec, placed
from tests.placement.requests import a_request


@pytest.mark.parametrize(
    ("args", "sizes"),
    [
        (["--tensor-parallel-size", "4"], {"tensor": 4}),
        (["--tensor-parallel-size 4"], {"tensor": 4}),
        (["--tensor-parallel-size=4"], {"tensor": 4}),
        (["--tensor-parallel-size = 4"], {"tensor": 4}),
        (["--tensor_parallel_size 4"], {"tensor": 4}),
        (["-tp", "4"], {"tensor": 4}),
        (["-tp=4"], {"tensor": 4}),
        (["-pp 3"], {"pipeline": 3}),
        (["--pipeline_parallel_size=3"], {"pipeline": 3}),
        (["-dp 2"], {"data": 2}),
        (["--data-parallel-size", "2"], {"data": 2}),
        (["-pcp 2"], {"prefill_context": 2}),
        (["--prefill-context-parallel-size=2"], {"prefill_context": 2}),
        (["-tp 2", "-pp 3", "-dp 2", "-pcp 2"], {"tensor": 2, "pipeline": 3, "data": 2}),
        (["-tp 2", "-tp 4"], {"tensor": 4}),
        (["-tp 1"], {"tensor": 1}),
    ],
    ids=str,
)
def test_sizes_are_read_in_every_writing(args: list[str], sizes: dict[str, int]) -> None:
    found = stated_parallelism(parse_entries(tuple(args)))
    assert found is not None
    assert {name: getattr(found, name) for name in sizes} == sizes


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--max-num-seqs 4"],
        ["--data-parallel-size-local 2"],
        ["--decode-context-parallel-size 2"],
    ],
    ids=str,
)
def test_what_takes_no_accelerators_of_its_own_is_no_size(args: list[str]) -> None:
    assert stated_parallelism(parse_entries(tuple(args))) is None


@pytest.mark.parametrize("args", [["-tp 0"], ["--pipeline-parallel-size=-1"], ["-dp many"]])
def test_a_size_that_is_no_positive_number_is_refused(args: list[str]) -> None:
    with pytest.raises(Failure) as caught:
        stated_parallelism(parse_entries(tuple(args)))
    assert caught.value.cause is Cause.BAD_SPEC


def test_the_world_is_the_product() -> None:
    sizes = Parallelism(tensor=2, pipeline=3, data=2, prefill_context=2)
    assert sizes.world == 24
    assert str(sizes) == "tensor 2 x pipeline 3 x data 2 x prefill-context 2"
    assert str(Parallelism()) == "one accelerator"


@pytest.mark.parametrize(
    ("args", "taken", "tensor", "pipeline"),
    [
        ("-pp 3", 3, 1, 3),
        ("-dp 3", 3, 1, 1),
        ("-pcp 3", 3, 1, 1),
        ("-tp 2", 2, 2, 1),
        ("-tp 1", 1, 1, 1),
        ("-tp 2 -pp 3", 6, 2, 3),
        ("-tp 2 -dp 3", 6, 2, 1),
        ("-dp 7", 7, 1, 1),
    ],
)
def test_a_host_of_eight_gives_exactly_as_many_as_the_sizes_say(
    args: str, taken: int, tensor: int, pipeline: int
) -> None:
    """Only tensor-parallel ranks share the heads: 32 of them are no reason against three stages."""
    (seat,) = placed(a_spec(engine={"args": [args]}), a_host(gpus=8)).seats
    assert len(seat.accelerators) == taken
    assert (seat.tensor, seat.pipeline) == (tensor, pipeline)


@pytest.mark.parametrize(
    ("args", "gpus", "refusal"),
    [
        ("-tp 3", 8, Reason.PARALLELISM),
        ("-tp 3 -pp 2", 8, Reason.PARALLELISM),
        ("-pp 9", 8, Reason.NO_ACCELERATOR),
        ("-tp 2 -dp 8", 8, Reason.NO_ACCELERATOR),
    ],
)
def test_sizes_that_no_host_can_give_are_refused(args: str, gpus: int, refusal: Reason) -> None:
    (verdict,) = placed(a_spec(engine={"args": [args]}), a_host(gpus=gpus)).verdicts
    assert verdict.refusal == refusal


def test_a_copy_of_the_model_is_not_made_smaller_by_another_copy() -> None:
    """Data parallelism shares no weights: 100 GiB do not fit 80 GiB twice."""
    profile = a_profile(weight_bytes=100 * 2**30)
    host = a_host(gpus=4)
    assert not placed(a_spec(engine={"args": ["-dp 2"]}), host, profile=profile).fits
    assert placed(a_spec(engine={"args": ["-dp 2 -tp 2"]}), host, profile=profile).fits


@pytest.mark.parametrize("hosts", ["auto", 1])
def test_ranks_that_belong_on_other_hosts_are_refused_where_there_may_be_none(hosts: Any) -> None:
    spec = a_spec(engine={"args": ["-dp 4", "-dpl 2"]}, placement={"hosts": hosts})
    with pytest.raises(Failure, match="2 of 4 data-parallel ranks on each host take 2") as caught:
        a_request(spec)
    assert caught.value.cause is Cause.BAD_SPEC
    a_request(a_spec(engine={"args": ["-dp 4", "-dpl 4"]}))


@pytest.mark.parametrize(
    "accelerators", [1, 4, ["gpu-1:cuda:0"], ["gpu-1:cuda:0", "gpu-1:cuda:1", "gpu-1:cuda:2"]]
)
def test_sizes_that_contradict_the_accelerators_are_refused(accelerators: Any) -> None:
    spec = a_spec(engine={"args": ["-tp 2"]}, placement={"accelerators": accelerators})
    with pytest.raises(Failure, match=r"engine\.args make 2 \(tensor 2\)") as caught:
        a_request(spec)
    assert caught.value.cause is Cause.BAD_SPEC


@pytest.mark.parametrize("accelerators", [0, 2, ["gpu-1:cuda:0", "gpu-1:cuda:1"]])
def test_sizes_that_agree_with_the_accelerators_are_fine(accelerators: Any) -> None:
    spec = a_spec(engine={"args": ["-tp 2"]}, placement={"accelerators": accelerators})
    assert a_request(spec).count in (0, 2)
    (seat,) = placed(spec, a_host(gpus=2)).seats
    assert len(seat.accelerators) == a_request(spec).count


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
        ([8, 8], {"tensor": 2, "prefill_context": 2}, DP, 2, (2, 2), (0, 2)),
        ([8, 8], {"tensor": 2, "pipeline": 2, "prefill_context": 2}, DP, 2, (1, 1), (0, 1)),
        ([8, 8], {"data": 2}, DP, 8, (1, 1), (0, 1)),
        ([8, 8], {"data": 4}, DP, 4, (2, 2), (0, 2)),
        ([8, 8], {"data": 4, "pipeline": 2}, DP, 2, (2, 2), (0, 2)),
        ([8, 8], {"data": 2, "prefill_context": 4}, DP, 2, (1, 1), (0, 1)),
        ([8, 4], {"data": 3}, DP, 4, (2, 1), (0, 2)),
        ([8, 8], {"data_local": 1}, DP, 8, (1, 1), (0, 1)),
        ([8, 8], {"tensor": 8, "pipeline": 2}, MP, 8, (1, 1), (0, 0)),
        ([8, 8], {"tensor": 16}, MP, 16, (1, 1), (0, 0)),
        ([8, 8], {"data": 1}, MP, 16, (1, 1), (0, 0)),
        ([8, 8], {"tensor": 16, "data_local": 1}, MP, 16, (1, 1), (0, 0)),
        ([8, 8], {"pipeline": 2}, MP, 8, (1, 1), (0, 0)),
        ([8, 8], {"prefill_context": 2}, MP, 8, (1, 1), (0, 0)),
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
    ("accelerators", "sizes", "data"),
    [
        ([8, 4], {}, 3),
        ([8, 8], {"tensor": 16}, 1),
        ([8, 8, 8, 8], {"tensor": 16}, 2),
        ([2] * 6, {"tensor": 6}, 2),
    ],
)
def test_it_says_how_many_ranks_there_are(
    accelerators: list[int], sizes: dict[str, int], data: int
) -> None:
    assert laid_out(accelerators, **sizes).data == data


def test_an_open_pipeline_is_one_stage() -> None:
    assert laid_out([8, 8]).pipeline == 1
    assert laid_out([8, 8], tensor=8, pipeline=2).pipeline == 2
    assert laid_out([8, 8], tensor=2, pipeline=2).pipeline == 2


@pytest.mark.parametrize(
    ("accelerators", "sizes", "reason"),
    [
        ([8, 8], {"tensor": 0}, "tensor parallel size 0 is not positive"),
        ([8, 8], {"pipeline": 0}, "pipeline parallel size 0 is not positive"),
        ([8, 8], {"prefill_context": -1}, "prefill-context parallel size -1 is not positive"),
        ([8, 8], {"data": 0}, "data parallel size 0 is not positive"),
        ([8, 8], {"data_local": 0}, "data-local parallel size 0 is not positive"),
        ([8, 0], {}, "at least one accelerator"),
        ([], {}, "at least one accelerator"),
        ([8, 8], {"data": 3}, "16 accelerators cannot be split into 3 equal parts"),
        ([8, 8], {"data": 2, "pipeline": 3}, "cannot be split into 6"),
        ([8, 8], {"tensor": 8, "data": 3}, "data parallel size 3 is requested, the hosts take 2"),
        ([8, 8], {"tensor": 4, "data": 2}, "data parallel size 2 is requested, the hosts take 4"),
        (
            [8, 8],
            {"tensor": 4, "data_local": 1},
            "1 local ranks are requested, the hosts take 2, 2",
        ),
        ([8, 4], {"data_local": 2}, "2 local ranks are requested, the hosts take 2, 1"),
        ([8, 4], {"tensor": 8}, "have to be equal; they give 8, 4"),
        ([8, 8], {"tensor": 12}, "a rank of 12 accelerators does not fill hosts of 8"),
        ([8, 8, 8], {"tensor": 16}, "3 hosts cannot be split into ranks of 2 hosts"),
        ([8, 8], {"tensor": 16, "data": 2}, "data parallel size 2 is requested, the hosts take 1"),
        ([8] * 4, {"tensor": 16, "data_local": 2}, "2 local ranks are requested, but a rank spans"),
    ],
)
def test_what_vllm_cannot_lay_out_is_refused_with_its_reason(
    accelerators: list[int], sizes: dict[str, int], reason: str
) -> None:
    with pytest.raises(Refusal) as caught:
        multi_host_topology(accelerators, ParallelSizes(**sizes))
    assert caught.value.reason is Reason.TOPOLOGY
    assert reason in caught.value.note
