from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason
from moorage.placement.parallelism import Parallelism, stated_parallelism
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
