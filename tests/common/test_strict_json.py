from __future__ import annotations

import json
import math
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.common.strict_json import JsonError, JsonLimits, decode
from moorage.common.units import MIB

DEEP = 200_000


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[" * DEEP + b"]" * DEEP, "is nested more than 64 deep"),
        (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "is nested more than 64 deep"),
        (b'{"a":[' * DEEP + b"]}" * DEEP, "is nested more than 64 deep"),
        (b"[" * DEEP, "is nested more than 64 deep"),
        (b"[" * 65 + b"]" * 65, "is nested more than 64 deep"),
        (b"9" * 129, "has a number of 129 digits, 999999999999999999999999..."),
        (b"[1e999]", "has a number that is too large, 1e999"),
        (b"[-1e999]", "has a number that is too large, -1e999"),
        (b"[0." + b"3" * 4_000_000 + b"]", "has a number of 4,000,002 digits"),
        (b"[NaN]", "has NaN, which is no number in JSON"),
        (b"[-Infinity]", "has -Infinity, which is no number in JSON"),
        (b'["\xff"]', "is not UTF-8: invalid start byte, at 2"),
        ('["\ud800"]', "is not UTF-8: surrogates not allowed, at 2"),
        (b'["\\ud800"]', "has half of a surrogate pair in a text"),
        (b'{"\\uDC00": 1}', "has half of a surrogate pair in a text"),
        (b"[" + b"1," * 300_000 + b"1]", "has more than 250,000 values"),
        (b"[" + b"{}," * 300_000 + b"{}]", "has more than 250,000 values"),
        (b" " * (8 * MIB + 1), "is larger than 8.0 MiB"),
        ("\u00e4" * (5 * MIB), "is larger than 8.0 MiB"),
        (b"", "is not JSON: Expecting value at line 1, column 1"),
        (b"<html>", "is not JSON: Expecting value at line 1, column 1"),
        (b'{"a": "\x1b[2J"}', "is not JSON: Invalid control character at at line 1, column 8"),
        (b'["a', "is not JSON: Unterminated string starting at at line 1, column 2"),
        (b'["a\\', "is not JSON: Unterminated string starting at at line 1, column 2"),
        (b"[}", "is not JSON: Expecting value at line 1, column 2"),
    ],
)
def test_what_is_no_json_or_too_much_is_refused_in_words(
    content: bytes | str, expected: str
) -> None:
    with pytest.raises(JsonError) as refused:
        decode(content)
    assert str(refused.value).startswith(expected)


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"a": [{"b": [1, -2.5, None, True, ']]]]\\"[[{']}]},
        "\U0001f40b \u00e4 \\ud800",
        10**100,
        1e300,
        json.loads("[" * 64 + "]" * 64),
    ],
)
def test_what_is_sane_is_decoded(value: object) -> None:
    assert decode(json.dumps(value)) == value
    assert decode(json.dumps(value, ensure_ascii=False).encode()) == value


def test_brackets_in_texts_are_no_depth() -> None:
    assert decode(json.dumps(["[" * 1000, '"' + "{" * 1000])) == ["[" * 1000, '"' + "{" * 1000]


def test_constants_are_numbers_where_a_caller_takes_them() -> None:
    low, high, none = decode("[-Infinity, Infinity, NaN]", JsonLimits(constants=True))
    assert (low, high) == (-math.inf, math.inf)
    assert math.isnan(none)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ).filter(lambda value: "inf" not in repr(value))
)
def test_what_python_writes_is_read_back(value: object) -> None:
    assert decode(json.dumps(value)) == value


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_text_is_refused_or_decoded_to_what_can_be_written_again(content: bytes | str) -> None:
    try:
        value = decode(content)
    except JsonError:
        return
    assert decode(json.dumps(value)) == value


@pytest.mark.parametrize("piece", [b'"', b"[],", b'{"":[]},'])
def test_eight_mebibytes_are_judged_in_little_memory(piece: bytes) -> None:
    content = (piece * (8 * MIB // len(piece) + 1))[: 8 * MIB]
    tracemalloc.start()
    try:
        with pytest.raises(JsonError):
            decode(content)
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB
    finally:
        tracemalloc.stop()
