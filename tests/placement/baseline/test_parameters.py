from __future__ import annotations

import pytest

from moorage.placement.baseline.parameters import Parameters

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
    assert Parameters(entries).number(*TP) == 4


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
    assert Parameters(entries).number(*TP) is None


def test_json_stays_whole_whatever_stands_around_it() -> None:
    line = '--a={"x y": [1, "}"]} --b=[{"c": "d e"}, 2] --tp=2'
    parameters = Parameters([line])
    assert parameters.value("a") == '{"x y": [1, "}"]}'
    assert parameters.value("b") == '[{"c": "d e"}, 2]'
    assert parameters.number("tp") == 2


def test_what_looks_like_json_but_is_not_is_split_as_a_shell_would() -> None:
    assert Parameters(["--a={'x': 1} --tp=2"]).value("a") == "{x:"


def test_negative_numbers_are_values() -> None:
    assert Parameters(["--a", "-0.5"]).value("a") == "-0.5"
    assert Parameters(["--a -1"]).number("a") == -1


def test_a_backslash_that_is_escaped_itself_stays() -> None:
    assert Parameters(["--a x\\\\"]).value("a") == "x\\"


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
    assert Parameters(entries).switch("omni") is on


def test_an_open_quote_is_an_error() -> None:
    with pytest.raises(ValueError, match="quotation"):
        Parameters(["--a 'b"])
