"""The choice of the image: from the spec, else from a configured version, else the catalogue."""

from collections.abc import Sequence
from functools import lru_cache

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason, Refusal
from moorage.common.values import Origin, Value
from moorage.common.versions import version_key
from moorage.images.catalogue import (
    CATALOGUE,
    Fit,
    cann_variant,
    has_programs,
    pick_runtime,
    tagged_version,
)
from moorage.images.image import Image
from moorage.inventory.fleet_engines import CatalogueRow, EngineVersions
from moorage.spec import EngineName

CANN, CPU = "cann", "cpu"

IN_RUNNERS = (EngineName.VLLM, EngineName.SGLANG)

RUNNERS = (
    "set `engine.image`, or install the images of the extra `runners`"
    " (`pip install '.[runners]'` in the checkout)"
)


class ImageQuestion(Value):
    """All facts that determine the choice of an image.

    Attributes:
        kind: Accelerator type, or `cpu`; empty = the host has none of the chosen accelerators.
        image: The spec's image; it wins.
        version: Engine version in the spec; empty = any.
        default_version: Engine version to prefer where the spec names none.
        closed: Whether only the configured versions exist: nobody publishes images of the engine.
        runtime: Newest accelerator runtime that the host's driver runs; empty = unknown.
        family: Chip family that the host reports, such as `Ascend910B3`, or `7.0` for CUDA; empty =
            unknown.
    """

    engine: EngineName
    kind: str
    architecture: str = "amd64"
    image: str = ""
    version: str = ""
    default_version: str = ""
    versions: EngineVersions = EngineVersions.defaults()
    closed: bool = False
    runtime: str = ""
    family: str = ""

    def __hash__(self) -> int:
        """Hash without `versions`, which contain a dict."""
        own = (self.image, self.version, self.default_version)
        return hash((self.engine, self.kind, self.architecture, self.runtime, self.family, *own))


def choose_image(question: ImageQuestion, more: Sequence[CatalogueRow] = ()) -> Image:
    """The image for an engine on one kind of hardware; never an image for other hardware.

    Args:
        more: Further rows, for when no official image is suitable.

    Raises:
        Failure: `NO_IMAGE` when no image is suitable.
    """
    first = answer = _official(question)
    if isinstance(first, Refusal) and more:
        answer = resolve_image(question, more)
    if isinstance(answer, Image):
        version = answer.engine_version or tagged_version(answer.reference, question.engine)
        return answer.model_copy(update={"engine_version": version})
    notes = [item.note for item in (first, answer) if isinstance(item, Refusal)]
    if not more and _is_in_runners(question):
        notes = [f"{note}: {RUNNERS}" for note in dict.fromkeys(notes)]
    raise Failure(Cause.NO_IMAGE, "; ".join(dict.fromkeys(notes)))


def _is_in_runners(question: ImageQuestion) -> bool:
    """Whether only the package of further images may have one for the engine and hardware."""
    engine, kind = question.engine, question.kind
    official = any((row.engine, row.accelerator_type) == (engine, kind) for row in CATALOGUE)
    return not official and engine in IN_RUNNERS and kind not in ("", CPU)


@lru_cache(maxsize=1024)
def _official(question: ImageQuestion) -> Image | Refusal:
    """The official image; cached, because many hosts of a fleet have the same question."""
    return resolve_image(question, CATALOGUE)


def resolve_image(question: ImageQuestion, catalogue: Sequence[CatalogueRow]) -> Image | Refusal:
    """The image for a question, or the refusal.

    For an engine with `closed` versions, the newest replaces a version that is not configured, as
    in GPUStack; moorage refuses such a spec beforehand (`placement/engine_checks.py`).

    Args:
        catalogue: Rows of one publisher. Call once per publisher, the preferred publisher first.
    """
    if question.image:
        return Image(
            reference=question.image,
            engine_version=question.version,
            origin=Origin.USER,
            reason="engine.image in the spec",
        )
    try:
        return _configured(question) or _from_catalogue(question, catalogue)
    except Refusal as refusal:
        return refusal.with_traceback(None)


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


def _from_catalogue(question: ImageQuestion, catalogue: Sequence[CatalogueRow]) -> Image:
    """The image of the rows that match engine, hardware, version and driver, filtered in turn."""
    engine, kind, architecture = question.engine, question.kind, question.architecture
    built = [row for row in catalogue if (row.engine, row.accelerator_type) == (engine, kind)]
    if not built:
        raise _no_image(f"no official image of {engine} for {kind} is known")
    version = f" {question.version}" if question.version else ""
    subject = f"no image of {engine}{version} for {kind}"
    variant = ""
    if kind == CANN:
        name, variant = _cann_variant(question.family)
        built = [row for row in built if row.variant == name]
        if not built:
            raise _no_image(f"{subject} is built for {variant}")
    rows = [row for row in built if architecture in row.architectures]
    if not rows:
        others = ", ".join(sorted({name for row in built for name in row.architectures}))
        raise _no_image(
            f"{engine}'s image for {kind} is built for {others}, the host is {architecture}"
        )
    offered = [row for row in rows if _is_offered(row, question)]
    if not offered:
        raise _no_image(f"{subject} is known for {architecture}")
    able = [row for row in offered if has_programs(row, question.family)]
    if not able:
        raise _no_image(_chip_too_old(question, offered, rows))
    runtime, fit = _runtime(question, able, rows)
    return _newest(question, [row for row in able if row.runtime == runtime], fit, variant)


def _no_image(note: str) -> Refusal:
    return Refusal(Reason.NO_IMAGE, note)


def _cann_variant(family: str) -> tuple[str, str]:
    variant, is_known = cann_variant(family)
    chip = f"the chip {family}" if family else "the chip"
    why = family if is_known else f"the default; {chip} is not known"
    return variant, f"Ascend {variant} ({why})"


def _is_offered(row: CatalogueRow, question: ImageQuestion) -> bool:
    if question.version:
        return row.has(question.version)
    return not row.deprecated and (bool(row.only_version) or row.has(question.default_version))


def _chip_too_old(
    question: ImageQuestion, rows: Sequence[CatalogueRow], every: Sequence[CatalogueRow]
) -> str:
    """Why no row has programs for the host's chips, and what does; `every` as for `_runtime`."""
    least = min((row.capability for row in rows), key=version_key)
    older = _older(question, every)
    other = (
        f"ask for an `engine.version` {older}" if older else "set `engine.image` to one that has"
    )
    return (
        f"{question.engine}'s images for {question.kind} have programs for compute capability"
        f" {least} and newer, the host's accelerators have {question.family}: {other}"
    )


def _runtime(
    question: ImageQuestion, rows: Sequence[CatalogueRow], every: Sequence[CatalogueRow]
) -> tuple[str, Fit]:
    """The best runtime of the rows, and how it suits the host's driver.

    `every` has the rows of all versions, for a suggestion.
    """
    if picked := pick_runtime([row.runtime for row in rows], question.runtime):
        return picked
    name, older = question.kind.upper(), _older(question, every)
    built = ", ".join(sorted({row.runtime for row in rows}, key=version_key))
    raise _no_image(
        f"{question.engine}'s images for {question.kind} are built for {name} {built}, the host"
        f" runs {name} {question.runtime}: update its driver"
        + (f", or ask for an `engine.version` {older}" if older else "")
    )


def _older(question: ImageQuestion, rows: Sequence[CatalogueRow]) -> str:
    """The newest older versions with an image for the host's driver, in words; empty = none."""
    asked = version_key(question.version or question.default_version)
    fitting = (row for row in rows if pick_runtime([row.runtime], question.runtime))
    suited = [row for row in fitting if has_programs(row, question.family)]
    bounds = [row.before for row in suited if version_key(row.before) <= asked]
    if bound := max(bounds, key=version_key, default=""):
        return f"older than {bound}"
    single = [row.only_version for row in suited if version_key(row.only_version) < asked]
    newest = max(single, key=version_key, default="")
    return f"such as {newest}" if newest else ""


def _newest(question: ImageQuestion, rows: list[CatalogueRow], fit: Fit, variant: str) -> Image:
    """The image of the requested or default version, else of the newest, with one runtime."""
    wanted = question.version or question.default_version
    versions = {row.only_version or wanted: row for row in rows}
    version = wanted if wanted in versions else max(versions, key=version_key)
    row = versions[version]
    publisher = f"{row.publisher}, {variant}" if variant else row.publisher
    return Image(
        reference=row.reference(version),
        engine_version=version,
        origin=Origin.DEFAULT,
        reason=f"{publisher}{_runtime_note(row.runtime, question, fit)}",
        runtime=row.runtime,
        newer_runtime=fit is Fit.SAME_MAJOR,
    )


def _runtime_note(runtime: str, question: ImageQuestion, fit: Fit) -> str:
    """A note about the runtime of the chosen image, for the reason."""
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
