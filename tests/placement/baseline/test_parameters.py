from __future__ import annotations

import pytest

from moorage.common.failures import Failure
from moorage.placement.baseline.parameters import (
    ErrorClass,
    Parameters,
    is_native,
    parallel_sizes,
    require_whole_ranks,
    world_size,
)
from moorage.placement.parallelism import ParallelSizes
from moorage.spec.arguments import parse_entries


def parameters(entries: list[str]) -> Parameters:
    return Parameters(parse_entries(tuple(entries)))


TP = ("tensor-parallel-size", "tp")


@pytest.mark.parametrize(
    "entries",
    [
        ["--tensor-parallel-size=4"],
        ["--tensor-parallel-size 4"],
        ["--tensor-parallel-size", "4"],
        ["  --tensor-parallel-size   4 "],
        ["-tp=4"],
        ["-tp", "4"],
        ["--tp=4"],
        ["--max-model-len 8192 --tensor-parallel-size=4 --enable-expert-parallel"],
        ["--tensor-parallel-size \\\n 4"],
        ["--tensor-parallel-size 4 \\"],
        ["--tensor-parallel-size '4'"],
        ["", "stray", "--tp=4"],
        ["--tp", "--tp=4"],
        ["--tp=4", "--tp=8"],
        ["-1", "--tp", "4"],
        ["--", "--tp=4"],
    ],
    ids=str,
)
def test_a_size_is_read_however_it_is_written(entries: list[str]) -> None:
    assert parameters(entries).number(*TP) == 4


@pytest.mark.parametrize(
    "entries",
    [
        [],
        ["--tensor_parallel_size=4"],
        ["tensor-parallel-size=4"],
        ["--tp"],
        ["--tp", "--pp=4"],
        ["--tp="],
        ["--tp=four"],
        ["--tp=4.0"],
        ["--tp=four", "--tp=4"],
        ["--model", "x --tp=4"],
        ['--hf-overrides={"a": "--tp 4", "b": [1, "--tp=4"]}'],
        ['--hf-overrides={"--tp": 4}'],
    ],
    ids=str,
)
def test_what_is_no_size_is_left_out(entries: list[str]) -> None:
    assert parameters(entries).number(*TP) is None


def test_json_stays_whole_whatever_stands_around_it() -> None:
    line = '--a={"x y": [1, "}"]} --b=[{"c": "d e"}, 2] --tp=2'
    read = parameters([line])
    assert read.value("a") == '{"x y": [1, "}"]}'
    assert read.value("b") == '[{"c": "d e"}, 2]'
    assert read.number("tp") == 2


def test_negative_numbers_are_values() -> None:
    assert parameters(["--a", "-0.5"]).value("a") == "-0.5"
    assert parameters(["--a -1"]).number("a") == -1


def test_a_backslash_that_is_escaped_itself_stays() -> None:
    assert parameters(["--a x\\\\"]).value("a") == "x\\"


@pytest.mark.parametrize(
    ("entries", "on"),
    [
        ([], False),
        (["--omni"], True),
        (["--omni=true"], True),
        (["--omni", "anything"], True),
        (["--omni=false"], False),
        (["--omni", "False"], False),
        (["--omni 0"], False),
        (["--omni=no"], False),
        (["--omni=off"], False),
        (["--omni=f"], False),
        (["--omni=N"], False),
        (["--omni=false", "--omni"], False),
        (["--omni", "--x=false"], True),
        (["--no-omni"], False),
    ],
    ids=str,
)
def test_a_switch_is_on_unless_it_says_otherwise(entries: list[str], on: bool) -> None:
    assert parameters(entries).switch("omni") is on


def test_a_count_of_accelerators_is_the_tensor_parallel_size_unless_a_size_is_written() -> None:
    assert parallel_sizes(parameters(["--tp"]), 4) == ParallelSizes(tensor=4)
    assert parallel_sizes(parameters(["--pp=2"]), 4) == ParallelSizes(pipeline=2)
    assert parallel_sizes(parameters(["--tp=four"]), 4) == ParallelSizes()


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
    read = parameters([line])
    assert world_size(parallel_sizes(read), read) == world


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
    with pytest.raises(Failure, match=flag) as caught:
        parallel_sizes(parameters([line]))
    assert caught.value.named == {"class": ErrorClass.NON_POSITIVE}


@pytest.mark.parametrize(
    ("version", "line", "native"),
    [
        (None, "", False),
        ("0.32.0", "", False),
        ("0.18.0-custom", "", True),
        ("0.19-custom", "", True),
        ("1-custom", "", True),
        ("0.18.0.post1-custom", "", True),
        ("0.18.0+cu129-custom", "", True),
        ("0.17.9-custom", "", False),
        ("0.9.2-custom", "", False),
        ("0.18.0-rc1-custom", "", False),
        ("0.18.0-beta1-custom", "", False),
        ("0.18.0-alpha1-custom", "", False),
        ("0.18.0rc1-custom", "", False),
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
    assert is_native(version, parameters([line])) is native


@pytest.mark.parametrize(
    ("data", "local", "refused"),
    [(4, 2, False), (3, 1, False), (3, 2, True), (1, 2, True), (None, 2, False), (3, None, False)],
)
def test_ranks_are_shared_evenly(data: int | None, local: int | None, refused: bool) -> None:
    sizes = ParallelSizes(data=data, data_local=local)
    if not refused:
        require_whole_ranks(sizes)
        return
    with pytest.raises(Failure) as caught:
        require_whole_ranks(sizes)
    assert caught.value.named == {"class": ErrorClass.LOCAL_RANKS}
