from __future__ import annotations

import itertools

import pytest

from moorage.common.versions import major, version_key

ASCENDING = [
    *("", "0.8.5", "0.10.0", "0.10.1.1", "0.10.2", "0.32.0.dev1", "0.32.0rc1", "0.32.0"),
    *(
        "0.32.0.post1",
        "0.32.1",
        "8.3.rc1",
        "8.3.rc2",
        "8.3",
        "8.3.RC1",
        "8.3.1",
        "12.4",
        "12.9.1",
        "13.0",
        "nightly",
    ),
]


@pytest.mark.parametrize(("older", "newer"), list(itertools.combinations(ASCENDING, 2)))
def test_versions_have_an_order_though_they_follow_no_standard(older: str, newer: str) -> None:
    assert version_key(older) < version_key(newer)


@pytest.mark.parametrize("other", ["12.9", "12.9.0", "v12.9", "V12.9.0.0"])
def test_missing_numbers_are_zero(other: str) -> None:
    assert version_key(other) == version_key("12.9")
    assert major(other) == "12"
