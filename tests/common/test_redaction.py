from __future__ import annotations

import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.redaction import HIDDEN, Redactor, has_password, looks_like_a_secret

VALUES = st.text(st.characters(codec="utf-8", exclude_characters="[]"), min_size=6).filter(
    lambda text: len(text.strip()) >= 6
)


@given(VALUES, st.text(), st.text())
def test_no_known_value_is_left_in_a_text(value: str, before: str, after: str) -> None:
    found = Redactor({value: "NAME"})(f"{before}{value}{after}")
    assert value not in found.replace("[secret NAME]", "")


@pytest.mark.parametrize(
    "written",
    [
        'it\'s $5/"x"',
        json.dumps('it\'s $5/"x"'),
        repr('it\'s $5/"x"'),
        quote('it\'s $5/"x"', safe=""),
        "it%27s+%245%2F%22x%22",
    ],
)
def test_a_value_is_found_in_whatever_writing(written: str) -> None:
    assert "[secret KEY]" in Redactor({'it\'s $5/"x"': "KEY"})(f"--token={written} --more")


def test_each_line_of_a_key_is_a_secret() -> None:
    key = "first-line\nsecond-line\nx"
    found = Redactor({key: "KEY"})("saw second-line and x alone")
    assert found == "saw [secret KEY] and x alone"


def test_the_longer_of_two_values_is_taken_whole() -> None:
    redactor = Redactor({"abcdef": "SHORT", "abcdefghi": "LONG"})
    assert redactor("abcdefghi abcdef") == "[secret LONG] [secret SHORT]"


def test_a_value_that_is_too_short_to_be_one_takes_nothing_away() -> None:
    assert Redactor({"1": "SWITCH", "": "EMPTY"})("1 of 11") == "1 of 11"


@pytest.mark.parametrize(
    "token",
    [
        "hf_" + "aB3" * 11,
        "ghp_" + "a1" * 18,
        "glpat-" + "a1-" * 7,
        "sk-proj-" + "Ab1" * 14,
        "AKIA" + "ABCD1234" * 2,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_gives_itself_away_is_hidden_though_nobody_knows_it(token: str) -> None:
    assert Redactor({})(f"token {token}, then") == f"token {HIDDEN}, then"
    assert looks_like_a_secret(token)


def test_a_password_in_a_url_is_hidden_and_its_user_is_not() -> None:
    text = "postgresql://moorage:hush@db/moorage and ssh://me@gpu and http://h:1/a@b"
    assert Redactor({})(text) == (
        f"postgresql://moorage:{HIDDEN}@db/moorage and ssh://me@gpu and http://h:1/a@b"
    )
    assert has_password(text)
    assert not has_password("ssh://me@gpu, http://h:1/a@b")


def test_ordinary_words_stay() -> None:
    text = "vLLM 0.32.0 loads sk-learn, hf_hub and moorage-tiny.v1-r0-leader at http://10.0.0.1:40000/v1"
    assert Redactor({})(text) == text


def test_a_log_that_begins_tokens_without_end_is_read_once() -> None:
    text = "\n".join(["eyJ-" * 2048] * 512)
    began = time.monotonic()
    assert Redactor({})(text) == text
    assert time.monotonic() - began < 10  # with a square of it, twice as long
