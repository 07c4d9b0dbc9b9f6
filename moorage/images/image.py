"""The image that serves: the one in the spec, else a configured version's, else the catalogue's."""

from collections.abc import Sequence
from functools import lru_cache

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason, Refusal
from moorage.common.values import Origin, Value
from moorage.common.versions import version_key
from moorage.images.catalogue import CATALOGUE, Fit, cann_variant, pick_runtime, tagged_version
from moorage.inventory.fleet_engines import CatalogueRow, EngineVersions
from moorage.spec import EngineName
from moorage.spec.image_reference import repository

CANN, CPU = "cann", "cpu"

COMPILER = "c++-compiler"
LACKABLE = frozenset({COMPILER})
"""What an image may say that it lacks, in its label `moorage.lacks`."""


class ImageQuestion(Value):
    """Everything that the choice of an image depends on.

    Attributes:
        kind: Accelerator type, or `cpu`; empty = the host has nothing that was chosen.
        image: What the user wrote; it wins.
        version: Engine version in the spec; empty = any.
        default_version: Engine version to prefer where the spec names none.
        closed: Whether there are no versions but these: nobody publishes images of the engine.
        runtime: Newest accelerator runtime that the host's driver runs; empty = not known.
        family: Chip family as the host reports it, such as `Ascend910B3`.
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
        """Without the versions, which hold a dict."""
        own = (self.image, self.version, self.default_version)
        return hash((self.engine, self.kind, self.architecture, self.runtime, self.family, *own))


class Image(Value):
    """What step `image` makes.

    Attributes:
        reference: As it is written, such as `vllm/vllm-openai:v0.32.0`.
        digest: `sha256:...` of the repository where one is known, else empty.
        identity: The local image id, known once the host has it.
        engine_version: Version that the reference was chosen for; empty = unknown.
        origin: `user`, or `default` when it comes from the catalogue.
        newer_runtime: Whether the accelerator runtime in it is newer than what the host's driver
            was made for, so that it runs by minor-version compatibility only. NVIDIA's container
            hook refuses such an image unless `NVIDIA_DISABLE_REQUIRE=1` is set.
        lacks: Of `LACKABLE`, what it says that it lacks; known once the host has it.
    """

    reference: str
    digest: str = ""
    identity: str = ""
    engine_version: str = ""
    origin: Origin
    reason: str
    newer_runtime: bool = False
    lacks: tuple[str, ...] = ()

    @property
    def pinned(self) -> str:
        """What is executed: by digest, else by local id, else by reference."""
        if self.digest:
            return f"{repository(self.reference)}@{self.digest}"
        return self.identity or self.reference

    @property
    def portable(self) -> str:
        """What every host can pull: by digest, else by reference. A local id is one host's own."""
        return self.pinned if self.digest else self.reference


def choose_image(question: ImageQuestion, more: Sequence[CatalogueRow] = ()) -> Image:
    """The image for an engine on one kind of hardware; never another hardware's image instead.

    Args:
        more: Rows that are tried where no official image can serve.

    Raises:
        Failure: `NO_IMAGE` when none can work.
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
    """The image for a question, or why there is none.

    Of an engine whose versions are closed, the newest stands in for one that is not configured, as
    in GPUStack; moorage refuses such a spec before (`engines/checks.py`).

    Args:
        catalogue: Rows of one publisher. Ask once for each publisher, the preferred one first.
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
    """The image of the rows that suit engine, hardware, version and driver, narrowed in turn."""
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
    rows = [row for row in rows if _is_offered(row, question)]
    if not rows:
        raise _no_image(f"{subject} is known for {architecture}")
    runtime, fit = _runtime(question, rows)
    return _newest(question, [row for row in rows if row.runtime == runtime], fit, variant)


def _no_image(note: str) -> Refusal:
    return Refusal(Reason.NO_IMAGE, note)


def _cann_variant(family: str) -> tuple[str, str]:
    """The variant for the host's chips, and the same in words."""
    variant, is_known = cann_variant(family)
    chip = f"the chip {family}" if family else "the chip"
    why = family if is_known else f"the default; {chip} is not known"
    return variant, f"Ascend {variant} ({why})"


def _is_offered(row: CatalogueRow, question: ImageQuestion) -> bool:
    if question.version:
        return row.has(question.version)
    return not row.deprecated and (bool(row.only_version) or row.has(question.default_version))


def _runtime(question: ImageQuestion, rows: Sequence[CatalogueRow]) -> tuple[str, Fit]:
    """The accelerator runtime to take, and how it suits the host's driver."""
    if picked := pick_runtime([row.runtime for row in rows], question.runtime):
        return picked
    name = question.kind.upper()
    built = ", ".join(sorted({row.runtime for row in rows}, key=version_key))
    raise _no_image(
        f"{question.engine}'s images for {question.kind} are built for {name} {built}, the host"
        f" runs {name} {question.runtime}: update its driver, or ask for an older `engine.version`"
    )


def _newest(question: ImageQuestion, rows: list[CatalogueRow], fit: Fit, variant: str) -> Image:
    """The newest engine version of the rows that share a runtime."""
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
