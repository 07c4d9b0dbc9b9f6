from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from moorage.common.units import (
    GIB,
    KIB,
    LARGEST_SIZE,
    MIB,
    SIZE_PATTERN,
    Bytes,
    counted,
    human_bytes,
    human_seconds,
    parse_bytes,
    short_number,
    short_seconds,
)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (KIB, "1.0 KiB"),
        (int(1.5 * MIB), "1.5 MiB"),
        (80 * GIB, "80.0 GiB"),
        (2048 * GIB, "2.0 TiB"),
        (-3 * GIB, "-3.0 GiB"),
    ],
)
def test_bytes_are_written_with_the_largest_fitting_unit(amount: int, text: str) -> None:
    assert human_bytes(amount) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3596.4, "0.00 s"),
        (0, "0.00 s"),
        (0.424, "0.42 s"),
        (12.34, "12.3 s"),
        (60, "1 min 00 s"),
        (185, "3 min 05 s"),
    ],
)
def test_durations_are_written_as_said(seconds: float, text: str) -> None:
    assert human_seconds(seconds) == text


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        *((5, 5), ("7", 7), ("0", 0), (1e9, 10**9), ("12B", 12)),
        *(("16GiB", 16 * GIB), ("1.5 MiB", int(1.5 * MIB)), (" 16 GiB ", 16 * GIB)),
        *(("80GB", 80 * 10**9), ("3kB", 3000), ("3KB", 3000), ("1PiB", 2**50)),
        ("70.3GiB", int(70.3 * GIB)),
    ],
)
def test_sizes_are_read_as_people_write_them(written: object, amount: int) -> None:
    assert TypeAdapter(Bytes).validate_python(written) == amount


NO_SIZES: list[object] = [
    *(-1, "-1GiB", "+1GiB", "lots", "5 parsecs", None, True, "", " ", "GiB", [], {}),
    *("16,5GiB", "127.0.0.1", "80 GiB please", "16GiB;rm", "16GiB\n", "\t16GiB", "16\u00a0GiB"),
    *("1.5", "1.5B", 1.5, ".5GiB", "5.GiB", "1e3", "1e3GiB", "0x10", "1_000", "1 000", "16 16GiB"),
    *("16gib", "16Gib", "16G", "16b", "8bit", "16GiBGiB", "16 GiB 1 MiB", "\u0661\u0666GiB"),
    *("nan", "inf", float("nan"), float("inf"), 1e300, 10**400, 10**5000, "9" * 400, "9" * 5000),
    *("1.1PiB", "2PiB", 2**50 + 1, "0" * 100),
]


@pytest.mark.parametrize("written", NO_SIZES, ids=lambda one: type(one).__name__)
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(ValidationError, match="size such as"):
        TypeAdapter(Bytes).validate_python(written)


@given(st.text("0123456789.,-+eE kKMGTPiBb;\n\u0662", max_size=12))
def test_every_size_is_a_number_and_a_documented_unit(written: str) -> None:
    try:
        amount = parse_bytes(written)
    except ValueError:
        return
    assert re.fullmatch(SIZE_PATTERN, written, re.ASCII)
    assert 0 <= amount <= LARGEST_SIZE


@given(st.integers(0, LARGEST_SIZE))
def test_a_number_of_bytes_is_read_as_it_is(amount: int) -> None:
    assert parse_bytes(amount) == parse_bytes(str(amount)) == parse_bytes(f"{amount} B") == amount


@pytest.mark.parametrize(("number", "expected"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes")])
def test_things_are_counted(number: int, expected: str) -> None:
    assert counted(number, "node") == expected


@pytest.mark.parametrize(("seconds", "text"), [(0.0123, "12.3 ms"), (0.5, "500 ms"), (2, "2.00 s")])
def test_parts_of_an_answer_are_told_in_milliseconds(seconds: float, text: str) -> None:
    assert short_seconds(seconds) == text


@pytest.mark.parametrize(
    ("figure", "text"), [(2.8264, "2.83"), (180.847, "181"), (999.7, "1000"), (12345.6, "12346")]
)
def test_a_measured_figure_has_three_digits(figure: float, text: str) -> None:
    assert short_number(figure) == text
