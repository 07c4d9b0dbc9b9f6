from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from moorage.units import GIB, KIB, MIB, Bytes, counted, human_bytes, human_seconds


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
    [(0, "0.00 s"), (0.424, "0.42 s"), (12.34, "12.3 s"), (60, "1 min 00 s"), (185, "3 min 05 s")],
)
def test_durations_are_written_as_said(seconds: float, text: str) -> None:
    assert human_seconds(seconds) == text


@pytest.mark.parametrize(
    ("written", "amount"),
    [(5, 5), ("16GiB", 16 * GIB), ("1.5 MiB", int(1.5 * MIB)), ("80GB", 80 * 10**9), ("7", 7)],
)
def test_sizes_are_read_as_people_write_them(written: object, amount: int) -> None:
    assert TypeAdapter(Bytes).validate_python(written) == amount


@pytest.mark.parametrize("written", [-1, "-1GiB", "lots", "5 parsecs", None])
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Bytes).validate_python(written)


@pytest.mark.parametrize(("number", "told"), [(0, "0 nodes"), (1, "1 node"), (2, "2 nodes")])
def test_things_are_counted(number: int, told: str) -> None:
    assert counted(number, "node") == told
