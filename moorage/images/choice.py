"""Which image serves: the one in the spec, else one's own for the version, else the catalogue's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from moorage.common.failures import Cause, Failure
from moorage.images.catalogue import CATALOGUE, tagged_version
from moorage.images.image import Image, ImageAnswer, ImageQuestion, ImageRefusal
from moorage.images.resolve import resolve_image
from moorage.inventory.fleet_engines import CatalogueRow, EngineVersion, EngineVersions
from moorage.spec import EngineName, ModelSpec


def choose_image(
    spec: ModelSpec,
    engine: EngineName,
    default_version: str,
    kind: str,
    architecture: str,
    *,
    runtime: str = "",
    family: str = "",
    configured: EngineVersions = EngineVersions(),  # noqa: B008
    closed: bool = False,
    more: Sequence[CatalogueRow] = (),
) -> Image:
    """The image for an engine on one kind of hardware.

    Args:
        spec: What the user wrote.
        engine: The engine.
        default_version: Version to take when neither spec nor fleet names one.
        kind: Accelerator type, or `cpu`.
        architecture: CPU architecture of the host, such as `amd64`.
        runtime: Newest accelerator runtime that the host's driver runs; empty = not known.
        family: Chip family of the accelerators, where images differ by it.
        configured: What the fleet says about the engine's versions.
        closed: Whether the engine has no other versions.
        more: Images that are asked for where no official one can serve.

    Raises:
        Failure: `NO_IMAGE` when none can work; never another hardware's image instead.
    """
    default = configured.default_version or default_version
    wish = (spec.engine.image or "", spec.engine.version or "", default)
    own = tuple((name, version.image or "") for name, version in configured.versions.items())
    question, first = _official(engine, wish, (own, closed), (kind, architecture, runtime, family))
    answer = resolve_image(question, more) if isinstance(first, ImageRefusal) and more else first
    if isinstance(answer, ImageAnswer):
        return Image(
            reference=answer.reference,
            engine_version=answer.engine_version or tagged_version(answer.reference, engine),
            origin=answer.origin,
            reason=answer.reason,
            newer_runtime=answer.newer_runtime,
        )
    raise Failure(Cause.NO_IMAGE, _reasons(first, answer))


@lru_cache(maxsize=1024)
def _official(
    engine: EngineName,
    wish: tuple[str, str, str],
    configured: tuple[tuple[tuple[str, str], ...], bool],
    hardware: tuple[str, str, str, str],
) -> tuple[ImageQuestion, ImageAnswer | ImageRefusal]:
    """The question, and what the official catalogue answers: a fleet asks it for every host."""
    image, version, default_version = wish
    own, closed = configured
    kind, architecture, runtime, family = hardware
    images = {name: EngineVersion(image=image or None) for name, image in own}
    question = ImageQuestion(
        engine=engine,
        kind=kind,
        architecture=architecture,
        image=image,
        version=version,
        default_version=default_version,
        versions=EngineVersions(default_version=default_version or None, versions=images),
        closed=closed,
        runtime=runtime,
        family=family,
    )
    return question, resolve_image(question, CATALOGUE)


def _reasons(first: ImageAnswer | ImageRefusal, second: ImageRefusal) -> str:
    """Why neither the official images nor the others can serve; each said once."""
    reasons = [item.reason for item in (first, second) if isinstance(item, ImageRefusal)]
    return "; ".join(dict.fromkeys(reasons))
