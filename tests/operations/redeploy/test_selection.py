"""Models are chosen by name, by pattern and by label."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from moorage.common.failures import Failure
from moorage.operations.redeploy.intent import (
    ModelOutcome,
    Redeployed,
    is_failure,
    row_of,
    summary,
)
from moorage.operations.redeploy.selection import (
    Selection,
    StopAt,
    WaveSize,
    is_over,
    share_of,
    waves,
)
from tests.builders import a_spec

SPECS = [
    a_spec(name="llama-8b", labels={"tier": "gold", "team": "search"}),
    a_spec(name="llama-70b", labels={"tier": "gold"}),
    a_spec(name="qwen", labels={"tier": "batch"}),
]


@pytest.mark.parametrize(
    ("selection", "meant"),
    [
        ({}, ["llama-70b", "llama-8b", "qwen"]),
        ({"names": ["llama-*"]}, ["llama-70b", "llama-8b"]),
        ({"names": ["qwen", "llama-8b"]}, ["llama-8b", "qwen"]),
        ({"labels": {"tier": "gold"}}, ["llama-70b", "llama-8b"]),
        ({"labels": {"tier": "gold", "team": "search"}}, ["llama-8b"]),
        ({"labels": {"team": "*"}}, ["llama-8b"]),
        ({"names": ["qwen"], "labels": {"tier": "gold"}}, []),
        ({"names": ["nothing-*"]}, []),
    ],
)
def test_who_is_meant(selection: dict[str, Any], meant: list[str]) -> None:
    chosen = Selection(**selection).chosen(SPECS)
    assert [spec.name for spec in chosen] == meant


def test_a_name_that_nobody_has_is_a_mistake() -> None:
    with pytest.raises(Failure, match="no model that runs or sleeps is named mistral"):
        Selection(names=("mistral", "qwen")).chosen(SPECS)


def test_an_outcome_in_one_line_and_as_a_row() -> None:
    done = Redeployed(
        model="a", outcome=ModelOutcome.REDEPLOYED, wave=2, before="a.v1", after="a.v2", seconds=61
    )
    idle = Redeployed(model="b", outcome=ModelOutcome.UNCHANGED)
    assert summary([idle, done, idle]) == "1 redeployed, 2 unchanged"
    assert summary([]) == "there was nothing to do"
    assert row_of(done)[:5] == ("2", "a", "redeployed", "a.v1", "a.v2")
    assert not is_failure([done, idle])
    assert is_failure([idle.model_copy(update={"outcome": ModelOutcome.NOT_BEGUN})])


SHARES = st.integers(0, 100).map(lambda percent: f"{percent}%")
SIZES = st.integers(1, 9999).map(str) | SHARES


@given(st.lists(st.integers()), SIZES)
def test_every_model_is_in_one_wave_and_in_order(models: list[int], size: str) -> None:
    cut = waves(models, size)
    assert [model for wave in cut for model in wave] == models
    assert all(cut), "an empty wave would be a pause for nothing"


@given(st.lists(st.integers(), min_size=1), SIZES)
def test_all_waves_but_the_last_are_as_large_as_asked_for(models: list[int], size: str) -> None:
    each = max(1, share_of(size, len(models))) if size.endswith("%") else int(size)
    *full, last = waves(models, size)
    assert all(len(wave) == each for wave in full)
    assert len(last) <= each


@pytest.mark.parametrize(
    ("stop_at", "failed", "total", "over"),
    [
        ("first", 0, 10, False),
        ("first", 1, 10, True),
        ("never", 10, 10, False),
        ("20%", 1, 10, False),
        ("20%", 2, 10, True),
        ("0%", 0, 10, False),
        ("0%", 1, 10, True),
        ("100%", 9, 10, False),
        ("100%", 10, 10, True),
        ("10%", 1, 3, True),
    ],
)
def test_no_more_is_begun_once(stop_at: str, failed: int, total: int, over: bool) -> None:
    assert is_over(stop_at, failed, total) is over


@given(SHARES, st.integers(1, 500))
def test_a_run_that_has_not_failed_goes_on_and_one_that_failed_wholly_does_not(
    share: str, total: int
) -> None:
    assert not is_over(share, 0, total)
    assert is_over(share, total, total)


@given(SHARES, st.integers(1, 200), st.integers(1, 200))
def test_what_is_over_stays_over(share: str, failed: int, total: int) -> None:
    assert not is_over(share, failed, total) or is_over(share, failed + 1, total)


@pytest.mark.parametrize("written", ["1", "9999", "0%", "25%", "100%"])
def test_sizes(written: str) -> None:
    assert TypeAdapter(WaveSize).validate_python(written) == written


@pytest.mark.parametrize("written", ["0", "-1", "", "101%", "2.5%", "all", "10000"])
def test_no_sizes(written: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(WaveSize).validate_python(written)


@pytest.mark.parametrize("written", ["", "last", "101%", "3"])
def test_no_stop_rules(written: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(StopAt).validate_python(written)
