from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.arguments import has_argument, user_tokens
from moorage.failures import Cause, Failure

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


@given(st.lists(st.from_regex(r"--[a-z]{1,5}(=[a-z0-9]{1,5})?", fullmatch=True)))
def test_single_words_stay_as_they_are(words: list[str]) -> None:
    assert user_tokens(words) == tuple(words)


@pytest.mark.parametrize(
    ("tokens", "flag", "there"),
    [
        (["--port", "1"], "--port", True),
        (["--port=1"], "--port", True),
        (["--max_model_len=1"], "--max-model-len", True),
        (["--max-model-len", "1"], "--max_model_len", True),
        (["--max-model"], "--max-model-len", False),
        (["--other=--port"], "--port", False),
        (["vllm"], "vllm", False),
        ([], "--port", False),
    ],
)
def test_an_option_is_found_in_either_writing(tokens: list[str], flag: str, there: bool) -> None:
    assert has_argument(tokens, flag) is there
