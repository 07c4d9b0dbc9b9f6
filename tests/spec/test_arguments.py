from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.failures import Cause, Failure
from moorage.spec.arguments import parse_words
from moorage.spec.tokenize import user_tokens

JSON = '{"mode": 3, "ops": ["a b", "c="]}'


@pytest.mark.parametrize(
    ("entry", "tokens"),
    [
        ("--enforce-eager", ["--enforce-eager"]),
        ("  --enforce-eager  ", ["--enforce-eager"]),
        ("--seed=7", ["--seed=7"]),
        ("--seed = 7", ["--seed=7"]),
        ("--seed =7", ["--seed=7"]),
        ("--seed= 7", ["--seed=7"]),
        ("--seed 7", ["--seed", "7"]),
        ("-O 3", ["-O", "3"]),
        ("--lora-modules a=/x b=/y", ["--lora-modules", "a=/x", "b=/y"]),
        ("--chat-template 'a file'", ["--chat-template", "a file"]),
        (f"--compilation-config={JSON}", [f"--compilation-config={JSON}"]),
        ("--max-model-len='auto'", ["--max-model-len=auto"]),
        (f"--a=1 --config={JSON} --b=2", ["--a=1", f"--config={JSON}", "--b=2"]),
        (f"--config {JSON} -O 3", ["--config", JSON, "-O", "3"]),
        ("--ids=[1, 2] --b", ["--ids=[1, 2]", "--b"]),
        ("--text={a b} --c", ["--text={a b}", "--c"]),
        ("--open={a", ["--open={a"]),
        ('--quoted={"a": "\\"} b"} c', ['--quoted={"a": "\\"} b"}', "c"]),
        ("--seed = -1 --b", ["--seed=-1", "--b"]),
        ("--seed= --b", ["--seed=", "--b"]),
        ("--size 2 \\", ["--size", "2"]),
        ("--size 2 \\\n --seed 7", ["--size", "2", "--seed", "7"]),
        ("-0.5", ["-0.5"]),
        ("   ", []),
        (JSON, [JSON]),
        ("plain value", ["plain value"]),
    ],
)
def test_an_entry_is_a_word_or_a_whole_line(entry: str, tokens: list[str]) -> None:
    assert user_tokens([entry]) == tuple(tokens)


def test_words_may_also_stand_alone() -> None:
    entries = ["--hf-overrides", JSON, "--seed", "7"]
    assert user_tokens(entries) == tuple(entries)


def test_a_quote_that_is_not_closed_is_the_users_mistake() -> None:
    with pytest.raises(Failure, match="--chat-template 'unclosed") as caught:
        user_tokens(["--chat-template 'unclosed"])
    assert caught.value.cause is Cause.BAD_SPEC
    assert "engine.args" in caught.value.detail


@pytest.mark.parametrize(
    ("tokens", "there"),
    [
        (["--size=1"], True),
        (["-s", "1"], True),
        (["-s=1"], True),
        (["--size.key", "1"], True),
        (["--no-size"], True),
        (["--the_size"], False),
        (["--sizes"], False),
        (["--other", "-s1"], False),
        ([], False),
    ],
)
def test_the_user_decides_about_an_option_in_many_ways(tokens: list[str], there: bool) -> None:
    assert parse_words(tokens).states("--size", "-s") is there


@given(st.lists(st.from_regex(r"--[a-z]{1,5}(=[a-z0-9]{1,5})?", fullmatch=True)))
def test_single_words_stay_as_they_are(words: list[str]) -> None:
    assert user_tokens(words) == tuple(words)


@pytest.mark.parametrize(
    ("tokens", "flag", "there"),
    [
        (["--port", "1"], "--port", True),
        (["--port=1"], "--port", True),
        (["--max_model_len=1"], "--max-model-len", True),
        (["--max-model"], "--max-model-len", True),
        (["--max"], "--max-model-len", False),
        (["--other=--port"], "--port", False),
        (["vllm"], "vllm", False),
        ([], "--port", False),
    ],
)
def test_an_option_is_found_in_either_writing(tokens: list[str], flag: str, there: bool) -> None:
    assert parse_words(tokens).has(flag) is there


@pytest.mark.parametrize(
    ("tokens", "value"),
    [
        (["--seed", "7"], "7"),
        (["--seed=7"], "7"),
        (["--seed="], ""),
        (["--seed"], ""),
        (["--seed", "--other"], ""),
        (["--seed", "-1"], "-1"),
        (["-s", "7"], "7"),
        (["--seed=1", "-s=7"], "7"),
        (["--seeds", "7"], None),
        (["7", "--other", "--seed"], ""),
        ([], None),
    ],
)
def test_the_last_value_of_an_option_counts(tokens: list[str], value: str | None) -> None:
    assert parse_words(tokens).value("--seed", "-s") == value


@pytest.mark.parametrize(
    ("tokens", "values"),
    [
        (["--sizes", "1", "2", "--other", "3"], ("1", "2")),
        (["--sizes=1", "2"], ("1", "2")),
        (["--sizes"], ()),
        (["--other"], None),
    ],
)
def test_an_option_may_have_several_values(
    tokens: list[str], values: tuple[str, ...] | None
) -> None:
    assert parse_words(tokens).values("--sizes") == values


@pytest.mark.parametrize(
    ("tokens", "value"),
    [
        (["--enforce-eager"], True),
        (["--enforce_eager"], True),
        (["--no-enforce-eager"], False),
        (["--enforce-eager", "--no-enforce-eager"], False),
        ([], None),
    ],
)
def test_a_switch_is_on_off_or_not_there(tokens: list[str], value: bool | None) -> None:
    assert parse_words(tokens).switch("--enforce-eager") is value


@pytest.mark.parametrize(
    ("text", "value"),
    [("8192", 8192), ("8k", 8000), ("8K", 8192), ("1.5m", 1_500_000), ("2G", 2 * 2**30)],
)
def test_numbers_may_have_a_letter_behind_them(text: str, value: int) -> None:
    assert parse_words(["--size", text]).whole_number("--size") == value


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5K", "8 k"])
def test_what_is_no_number_is_a_mistake_in_the_spec(text: str) -> None:
    with pytest.raises(Failure, match="--size: ") as caught:
        parse_words([f"--size={text}"]).whole_number("--size")
    assert caught.value.cause is Cause.BAD_SPEC


@pytest.mark.parametrize(
    ("tokens", "content"),
    [
        (["--conf", JSON], {"mode": 3, "ops": ["a b", "c="]}),
        ([f"--conf={JSON}"], {"mode": 3, "ops": ["a b", "c="]}),
        (
            ["--conf.a.b", "1", "--conf.a.c=text", "--conf.d"],
            {"a": {"b": 1, "c": "text"}, "d": True},
        ),
        (["--conf", JSON, "--conf.mode", "4"], {"mode": 4}),
        (["--conf.mode", "4", "--conf", JSON], {"mode": 4}),
        (
            ["--conf.a", "32k", "--conf.b=32K", "--conf.c=1.5K"],
            {"a": 32000, "b": 2**15, "c": "1.5K"},
        ),
        (["--conf.a+", "x,y", "--conf.a+=z"], {"a": ["x", "y", "z"]}),
        (["--other", JSON], None),
    ],
)
def test_an_option_may_be_json_whole_or_by_keys(
    tokens: list[str], content: dict[str, object] | None
) -> None:
    assert parse_words(tokens).json_object("--conf") == content


@pytest.mark.parametrize("tokens", [["--conf", "3"], ["--conf", "{"], ["--conf"]])
def test_what_is_no_json_object_is_a_mistake_in_the_spec(tokens: list[str]) -> None:
    with pytest.raises(Failure, match="--conf: not a JSON object"):
        parse_words(tokens).json_object("--conf")
