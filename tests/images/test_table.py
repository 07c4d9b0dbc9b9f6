"""The image table whole: every row of both catalogues, every kind of driver, and what never is."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import pytest

from moorage.common.failures import Cause, Failure
from moorage.images.catalogue import Fit, fit, runner_rows
from moorage.images.image import Image
from moorage.inventory.fleet_engines import CatalogueRow
from tests.images.table import (
    CATALOGUE,
    DEFAULT_VERSION,
    Wish,
    by_driver,
    by_row,
    everything,
    rendered,
    runner_catalogue,
)

RUNNER = runner_catalogue()


def test_the_table_by_driver(golden: Callable[[str, str], None]) -> None:
    golden("images_by_driver.txt", rendered(by_driver(everything()), RUNNER))


def test_the_table_by_row(golden: Callable[[str, str], None]) -> None:
    golden("images_by_row.txt", rendered(by_row(everything()), RUNNER))


def test_every_row_is_taken_when_its_version_is_asked_for_where_none_comes_before_it() -> None:
    taken = {
        (wish.kind, answer.reference)
        for wish in by_row(RUNNER)
        if isinstance(answer := wish.answer(RUNNER), Image)
    }
    official = {row.accelerator_type for row in CATALOGUE}
    assert taken >= {
        (row.accelerator_type, row.template)
        for row in RUNNER
        if row.accelerator_type not in official
    }


def _all_wishes(rows: Sequence[CatalogueRow]) -> list[Wish]:
    """All drivers and chips with all engine versions."""
    wishes = list(by_driver(rows))
    versions = sorted({row.since for row in rows if row.since})
    return [replace(wish, version=version) for wish, version in product(wishes, ["", *versions])]


def _check(rows: Sequence[CatalogueRow], more: Sequence[CatalogueRow]) -> int:
    """Hold what never may happen against every question; gives how many images were taken."""
    known: dict[str, list[CatalogueRow]] = defaultdict(list)
    wishes, taken = _all_wishes(rows), 0
    for row in rows:
        for version in {row.only_version} - {""} or {wish.version for wish in wishes}:
            known[row.reference(version or DEFAULT_VERSION)].append(row)
    for wish in wishes:
        answer = wish.answer(more)
        if isinstance(answer, Failure):
            assert answer.cause is Cause.NO_IMAGE
            assert wish.kind in answer.detail
            continue
        taken += 1
        mine = [row for row in known[answer.reference] if row.accelerator_type == wish.kind]
        assert mine, f"{wish}: {answer.reference} is for other hardware"
        assert any(_may_be_taken(row, wish, answer) for row in mine), f"{wish}: {answer}"
    return taken


def _may_be_taken(row: CatalogueRow, wish: Wish, answer: Image) -> bool:
    how = fit(row.runtime, wish.runtime)
    words = {
        Fit.FITS: "on a host that runs",
        Fit.SAME_MAJOR: "minor-version compatibility",
        Fit.UNKNOWN: "" if wish.kind == "cpu" else "not known",
    }
    return (
        wish.architecture in row.architectures
        and (not row.deprecated or bool(wish.version))
        and how is not Fit.TOO_NEW
        and words[how] in answer.reason
        and answer.newer_runtime is (how is Fit.SAME_MAJOR)
        and wish.version in ("", answer.engine_version)
    )


def test_no_answer_of_the_table_is_for_other_hardware_or_left_unsaid() -> None:
    assert _check(everything(), RUNNER) > 1000


def test_the_installed_package_keeps_the_same_rules() -> None:
    package = pytest.importorskip("gpustack_runner")
    rows = runner_rows(importlib.import_module(package.__name__).list_runners(todict=True))
    assert _check((*CATALOGUE, *rows), rows) > 1000


def test_a_driver_that_is_newer_never_gets_an_older_runtime() -> None:
    """Within one catalogue: what an older driver gets, a newer one gets too, or something newer."""
    ladders: dict[Wish, list[str]] = defaultdict(list)
    for wish in by_driver(CATALOGUE):
        answer = wish.answer(())
        if wish.kind == "cuda" and wish.runtime and isinstance(answer, Image):
            rows = [row for row in CATALOGUE if row.reference(DEFAULT_VERSION) == answer.reference]
            ladders[replace(wish, runtime="")].append(max(row.runtime for row in rows))
    assert ladders
    assert all(ladder == sorted(ladder) for ladder in ladders.values())
