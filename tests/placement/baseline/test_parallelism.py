from __future__ import annotations

import pytest

from moorage.placement.baseline.parallelism import (
    is_native,
    parallel_sizes,
    require_whole_ranks,
    wanted_accelerators,
    world_size,
)
from moorage.placement.baseline.parameters import Parameters
from moorage.placement.baseline.refusal import ErrorClass, RefusedRequest
from moorage.placement.parallelism import ParallelSizes
from tests.placement.baseline.builders import a_request, named

MP = "--distributed-executor-backend=mp"


@pytest.mark.parametrize(
    ("line", "world"),
    [
        ("", None),
        ("--tp=8", 8),
        ("--pp=3", 3),
        ("--pcp=2", 2),
        ("--dp=4", 4),
        ("--tp=2 --pp=3 --pcp=5 --dp=7", 210),
        ("--tensor-parallel-size=2 --pipeline-parallel-size=3", 6),
        ("--prefill-context-parallel-size=2 --data-parallel-size=4", 8),
        ("--dpl=2", None),
        ("--dp=4 --dpl=2", 4),
        ("--tp=2 --decode-context-parallel-size=2", 2),
        ("--data-parallel-hybrid-lb --tp=4 --dp=8", None),
        ("--data-parallel-hybrid-lb --tp=4 --dp=8 --dpl=2", 8),
        ("--data-parallel-hybrid-lb --dpl=2", 2),
        ("--data-parallel-hybrid-lb=false --tp=4 --dp=8 --dpl=2", 32),
    ],
)
def test_the_world_is_the_product_of_the_sizes(line: str, world: int | None) -> None:
    parameters = Parameters([line])
    assert world_size(parallel_sizes(parameters), parameters) == world


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        ("--tp=0", "--tensor-parallel-size 0"),
        ("--pp=-1", "--pipeline-parallel-size -1"),
        ("--pcp=0", "--prefill-context-parallel-size 0"),
        ("--dp=0", "--data-parallel-size 0"),
        ("--dpl=0", "--data-parallel-size-local 0"),
        ("--dpl=0 --tp=0", "--tensor-parallel-size 0"),
    ],
)
def test_sizes_are_positive(line: str, flag: str) -> None:
    with pytest.raises(RefusedRequest) as caught:
        parallel_sizes(Parameters([line]))
    assert caught.value.refusal.error is ErrorClass.NON_POSITIVE
    assert flag in caught.value.refusal.meaning


@pytest.mark.parametrize(
    ("manual", "per_replica", "world", "wanted"),
    [
        ((), None, None, 0),
        ((), 4, None, 0),
        ((), None, 8, 8),
        (("a:0", "a:1"), None, None, 2),
        (("a:0", "a:1"), 0, None, 2),
        (("a:0", "a:1"), 1, None, 1),
        (("a:0", "a:1"), None, 2, 2),
        (("a:0", "a:1"), 1, 1, 1),
    ],
)
def test_the_named_accelerators_or_the_sizes_say_how_many(
    manual: tuple[str, ...], per_replica: int | None, world: int | None, wanted: int
) -> None:
    request = a_request(manual=named(*manual), accelerators_per_replica=per_replica)
    assert wanted_accelerators(request, world) == wanted


def test_they_have_to_agree() -> None:
    request = a_request(manual=named("a:0", "a:1"))
    with pytest.raises(RefusedRequest) as caught:
        wanted_accelerators(request, 4)
    assert caught.value.refusal.error is ErrorClass.COUNT
    assert "2 accelerators" in caught.value.refusal.meaning


def test_unless_nobody_checks() -> None:
    request = a_request(manual=named("a:0", "a:1"), count_checked=False)
    assert wanted_accelerators(request, 4) == 2


@pytest.mark.parametrize(
    ("version", "line", "native"),
    [
        (None, "", False),
        ("0.32.0", "", False),
        ("0.18.0-custom", "", True),
        ("v0.18.0-custom", "", True),
        ("0.19-custom", "", True),
        ("1-custom", "", True),
        ("0.18.0.post1-custom", "", True),
        ("0.18.0+cu129-custom", "", True),
        ("0.17.9-custom", "", False),
        ("0.9.2-custom", "", False),
        ("0.18.0-rc1-custom", "", False),
        ("0.18.0-beta1-custom", "", False),
        ("0.18.0-alpha1-custom", "", False),
        ("0.18.0rc1-custom", "", True),
        ("nightly-custom", "", True),
        ("-custom", "", False),
        ("0.17.0-custom", MP, True),
        (None, MP, True),
        ("0.18.0-custom", "--distributed-executor-backend=ray", False),
        ("0.18.0-custom", "--distributed-executor-backend=external_launcher", False),
        ("0.18.0-custom", "--distributed-executor-backend", True),
    ],
)
def test_images_of_ones_own_are_joined_natively_from_a_version_on(
    version: str | None, line: str, native: bool
) -> None:
    assert is_native(a_request(engine_version=version), Parameters([line])) is native


@pytest.mark.parametrize(
    ("data", "local", "refused"),
    [(4, 2, False), (3, 1, False), (3, 2, True), (1, 2, True), (None, 2, False), (3, None, False)],
)
def test_ranks_are_shared_evenly(data: int | None, local: int | None, refused: bool) -> None:
    sizes = ParallelSizes(data=data, data_local=local)
    assert refusal_of_ranks(sizes) is (ErrorClass.LOCAL_RANKS if refused else None)


def refusal_of_ranks(sizes: ParallelSizes) -> ErrorClass | None:
    try:
        require_whole_ranks(sizes)
    except RefusedRequest as refused:
        return refused.refusal.error
    return None
