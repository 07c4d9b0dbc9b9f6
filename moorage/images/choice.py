"""Which image serves: the one in the spec, else a configured version's, else the catalogue's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason, Refusal
from moorage.common.values import Origin
from moorage.common.versions import version_key
from moorage.images.catalogue import CATALOGUE, Fit, cann_variant, pick_runtime, tagged_version
from moorage.images.image import Image, ImageQuestion
from moorage.inventory.fleet_engines import CatalogueRow

CANN, CPU = "cann", "cpu"


def choose_image(question: ImageQuestion, more: Sequence[CatalogueRow] = ()) -> Image:
    """The image for an engine on one kind of hardware.

    Args:
        question: The engine, the user's wishes and the host.
        more: Rows that are tried where no official image can serve.

    Raises:
        Failure: `NO_IMAGE` when none can work; never another hardware's image instead.
    """
    first = answer = _official(question)
    if isinstance(first, Refusal) and more:
        answer = resolve_image(question, more)
    if isinstance(answer, Image):
        version = answer.engine_version or tagged_version(answer.reference, question.engine)
        return answer.model_copy(update={"engine_version": version})
    notes = [item.note for item in (first, answer) if isinstance(item, Refusal)]
    raise Failure(Cause.NO_IMAGE, "; ".join(dict.fromkeys(notes)))


@lru_cache(maxsize=1024)
def _official(question: ImageQuestion) -> Image | Refusal:
    """Cached, because the question is the same for many hosts of a fleet."""
    return resolve_image(question, CATALOGUE)


def resolve_image(question: ImageQuestion, catalogue: Sequence[CatalogueRow]) -> Image | Refusal:
    """The image for a question, or why there is none; never one of other hardware instead.

    Of an engine whose versions are closed, the newest stands in for one that is not configured, as
    in GPUStack; moorage refuses such a spec before (`engines/checks.py`).

    Args:
        question: What is known of engine, wishes and host.
        catalogue: Rows of one publisher. Ask once for each publisher, the preferred one first.
    """
    if question.image:
        return Image(
            reference=question.image,
            engine_version=question.version,
            origin=Origin.USER,
            reason="engine.image in the spec",
        )
    return _configured(question) or _from_catalogue(question, catalogue)


def _configured(question: ImageQuestion) -> Image | None:
    versions = question.versions
    find = versions.find_or_newest if question.closed else versions.find
    found = find(question.version)
    if found is None or not found[1].image:
        return None
    name, version = found
    return Image(
        reference=version.image,
        engine_version=question.version or name,
        origin=Origin.USER,
        reason=f"the image configured for {question.engine} {name}",
    )


def _from_catalogue(question: ImageQuestion, catalogue: Sequence[CatalogueRow]) -> Image | Refusal:
    kind = (question.engine, question.kind)
    rows = [row for row in catalogue if (row.engine, row.accelerator_type) == kind]
    if not rows:
        return Refusal(
            Reason.NO_IMAGE, f"no official image of {question.engine} for {question.kind} is known"
        )
    rows, variant = _of_variant(rows, question)
    if not rows:
        return _no_image(f"{_subject(question)} is built for {variant}")
    named, rows = rows, [row for row in rows if question.architecture in row.architectures]
    if not rows:
        built = ", ".join(sorted({name for row in named for name in row.architectures}))
        return Refusal(
            Reason.NO_IMAGE,
            f"{question.engine}'s image for {question.kind} is built for {built},"
            f" the host is {question.architecture}",
        )
    rows = [row for row in rows if _is_offered(row, question)]
    if not rows:
        return Refusal(
            Reason.NO_IMAGE, f"{_subject(question)} is known for {question.architecture}"
        )
    picked = pick_runtime((row.runtime for row in rows), question.runtime)
    if picked is None:
        return _runtime_refusal(question, rows)
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


def _answer(question: ImageQuestion, rows: list[CatalogueRow], fit: Fit, variant: str) -> Image:
    """The newest engine version of the rows that share a runtime."""
    wanted = question.version or question.default_version
    versions = {row.only_version or wanted: row for row in rows}
    version = wanted if wanted in versions else max(versions, key=version_key)
    row = versions[version]
    reason = row.publisher
    if variant:
        reason = f"{reason}, {variant}"
    reason = f"{reason}{_runtime_note(row.runtime, question, fit)}"
    return Image(
        reference=row.reference(version),
        engine_version=version,
        origin=Origin.DEFAULT,
        reason=reason,
        newer_runtime=fit is Fit.SAME_MAJOR,
    )


def _runtime_note(runtime: str, question: ImageQuestion, fit: Fit) -> str:
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


def _runtime_refusal(question: ImageQuestion, rows: list[CatalogueRow]) -> Refusal:
    name = question.kind.upper()
    built = ", ".join(sorted({row.runtime for row in rows}, key=version_key))
    return Refusal(
        Reason.NO_IMAGE,
        f"{question.engine}'s images for {question.kind} are built for {name} {built}, the"
        f" host runs {name} {question.runtime}: update its driver, or ask for an older"
        " `engine.version`",
    )


def _subject(question: ImageQuestion) -> str:
    version = f" {question.version}" if question.version else ""
    return f"no image of {question.engine}{version} for {question.kind}"


def _no_image(note: str) -> Refusal:
    return Refusal(Reason.NO_IMAGE, note)
