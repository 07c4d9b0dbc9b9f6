"""The choice of an image: what the user wrote, else a configured version, else the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from moorage.common.values import Origin
from moorage.common.versions import major, version_key
from moorage.images.image import ImageAnswer, ImageQuestion, ImageRefusal
from moorage.inventory.fleet_engines import CatalogueRow


class Fit(StrEnum):
    """How well a runtime in an image suits the host's driver."""

    FITS = "fits"
    """The driver is as new or newer: drivers run what was built for older runtimes."""

    UNKNOWN = "unknown"
    """The host's version, or the image's, is not known."""

    SAME_MAJOR = "same-major"
    """Newer than the host's, of the same major version: minor-version compatibility."""

    TOO_NEW = "too-new"
    """Newer than the host's, by a major version."""


def fit(runtime: str, host: str) -> Fit:
    """How an image's runtime suits a host's; either may be empty for not known."""
    if not runtime or not host:
        return Fit.UNKNOWN
    if version_key(runtime) <= version_key(host):
        return Fit.FITS
    return Fit.SAME_MAJOR if major(runtime) == major(host) else Fit.TOO_NEW


def pick_runtime(runtimes: Iterable[str], host: str) -> tuple[str, Fit] | None:
    """The runtime version to take, or None when none would run.

    The newest that fits; where the host's version is not known, the newest; else the newest of the
    same major version.
    """
    ordered = sorted(set(runtimes), key=version_key, reverse=True)
    for wanted in (Fit.FITS, Fit.UNKNOWN, Fit.SAME_MAJOR):
        for runtime in ordered:
            if fit(runtime, host) is wanted:
                return runtime, wanted
    return None


DEFAULT_VARIANT = "910b"
"""Taken when a chip is not known, as GPUStack does."""

VARIANTS = {
    "910": "PremiumA ProA A ProB B",
    "310p": "310P1 310P2 310P3 310P4 310P5 310P7",
    "910b": "910B1 910B2 910B2C 910B3 910B4 910B4-1",
    "310b": "310B1 310B2 310B3 310B4",
    "a3": "910 910_9391 910_9392 910_9381 910_9382 910_9372 910_9362 910_9363",
    "950": "910_9579 910_95 950",
}
"""Chips (SoC names without `Ascend`; those of the first 910 without it, too) by variant of CANN.

The names are those of GPUStack's detector.
"""

_BY_CHIP = {
    f"ascend{'910' if variant == '910' else ''}{name}".lower(): variant
    for variant, names in VARIANTS.items()
    for name in names.split()
}


def cann_variant(family: str) -> tuple[str, bool]:
    """The variant for a chip, and whether the chip is known.

    Args:
        family: SoC name such as `Ascend910B3`, in any case.
    """
    name = family.strip().lower()
    if name.startswith("ascend950"):
        return "950", True
    return _BY_CHIP.get(name, DEFAULT_VARIANT), name in _BY_CHIP


CANN, CPU = "cann", "cpu"


def resolve_image(
    question: ImageQuestion, catalogue: Sequence[CatalogueRow]
) -> ImageAnswer | ImageRefusal:
    """The image for a question, or why there is none; never one of other hardware instead.

    Of an engine whose versions are closed, the newest stands in for one that is not configured, as
    in GPUStack; moorage refuses such a spec before (`engines/checks.py`).

    Args:
        question: What is known of engine, wishes and host.
        catalogue: Rows of one publisher. Ask once for each publisher, the preferred one first.
    """
    if question.image:
        return ImageAnswer(
            reference=question.image,
            engine_version=question.version,
            origin=Origin.USER,
            reason="engine.image in the spec",
        )
    return _configured(question) or _from_catalogue(question, catalogue)


def _configured(question: ImageQuestion) -> ImageAnswer | None:
    versions = question.versions
    find = versions.find_or_newest if question.closed else versions.find
    found = find(question.version)
    if found is None or not found[1].image:
        return None
    name, version = found
    return ImageAnswer(
        reference=version.image,
        engine_version=question.version or name,
        origin=Origin.USER,
        reason=f"the image configured for {question.engine} {name}",
    )


def _from_catalogue(
    question: ImageQuestion, catalogue: Sequence[CatalogueRow]
) -> ImageAnswer | ImageRefusal:
    kind = (question.engine, question.kind)
    rows = [row for row in catalogue if (row.engine, row.accelerator_type) == kind]
    if not rows:
        return ImageRefusal(
            reason=f"no official image of {question.engine} for {question.kind} is known"
        )
    rows, variant = _of_variant(rows, question)
    if not rows:
        return ImageRefusal(reason=f"{_subject(question)} is built for {variant}")
    named, rows = rows, [row for row in rows if question.architecture in row.architectures]
    if not rows:
        built = ", ".join(sorted({name for row in named for name in row.architectures}))
        return ImageRefusal(
            reason=f"{question.engine}'s image for {question.kind} is built for {built},"
            f" the host is {question.architecture}"
        )
    rows = [row for row in rows if _is_offered(row, question)]
    if not rows:
        return ImageRefusal(reason=f"{_subject(question)} is known for {question.architecture}")
    picked = pick_runtime((row.runtime for row in rows), question.runtime)
    if picked is None:
        return _refused_runtime(question, rows)
    runtime, fit = picked
    return _answer(question, [row for row in rows if row.runtime == runtime], fit, variant)


def _of_variant(
    rows: list[CatalogueRow], question: ImageQuestion
) -> tuple[list[CatalogueRow], str]:
    """The rows for the host's chips, and the chips in words."""
    if question.kind != CANN:
        return rows, ""
    variant, known = cann_variant(question.family)
    why = (
        question.family
        if known
        else f"the default; the chip{f' {question.family}' if question.family else ''} is not known"
    )
    return [row for row in rows if row.variant == variant], f"Ascend {variant} ({why})"


def _is_offered(row: CatalogueRow, question: ImageQuestion) -> bool:
    if question.version:
        return row.has(question.version)
    if row.deprecated:
        return False
    return bool(row.only_version) or row.has(question.default_version)


def _answer(
    question: ImageQuestion, rows: list[CatalogueRow], fit: Fit, variant: str
) -> ImageAnswer:
    """The newest engine version of the rows that share a runtime."""
    wanted = question.version or question.default_version
    versions = {row.only_version or wanted: row for row in rows}
    version = wanted if wanted in versions else max(versions, key=version_key)
    row = versions[version]
    reason = row.publisher
    if variant:
        reason = f"{reason}, {variant}"
    reason = f"{reason}{_said(row.runtime, question, fit)}"
    return ImageAnswer(
        reference=row.reference(version),
        engine_version=version,
        origin=Origin.DEFAULT,
        reason=reason,
        runtime=row.runtime,
        newer_runtime=fit is Fit.SAME_MAJOR,
    )


def _said(runtime: str, question: ImageQuestion, fit: Fit) -> str:
    """What has to be known about the runtime of the image that was taken."""
    name = question.kind.upper()
    if fit is Fit.SAME_MAJOR:
        return (
            f"; built for {name} {runtime}, newer than the host's {question.runtime}: it runs by"
            " minor-version compatibility, without the features of the newer driver"
        )
    if not runtime:
        return "" if question.kind == CPU else f"; its version of {name} is not known"
    if fit is Fit.UNKNOWN:
        return f"; built for {name} {runtime}, the host's version is not known"
    return f"; {name} {runtime} on a host that runs {question.runtime}"


def _refused_runtime(question: ImageQuestion, rows: list[CatalogueRow]) -> ImageRefusal:
    name = question.kind.upper()
    built = ", ".join(sorted({row.runtime for row in rows}, key=version_key))
    return ImageRefusal(
        reason=f"{question.engine}'s images for {question.kind} are built for {name} {built}, the"
        f" host runs {name} {question.runtime}: update its driver, or ask for an older"
        " `engine.version`"
    )


def _subject(question: ImageQuestion) -> str:
    version = f" {question.version}" if question.version else ""
    return f"no image of {question.engine}{version} for {question.kind}"
