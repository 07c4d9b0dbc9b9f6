"""The runtime that starts an engine on a host, and the image that it starts from."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from operator import itemgetter
from typing import NamedTuple

from moorage.common.failures import Failure
from moorage.common.refusal import Reason, Refusal
from moorage.common.values import fields
from moorage.common.versions import version_key
from moorage.images.catalogue import cann_variant
from moorage.images.image import CANN, Image, ImageQuestion, choose_image
from moorage.inventory.devices import device_kind, process_refusal
from moorage.inventory.snapshot import HostSnapshot, Program
from moorage.placement.engine import EngineTraits
from moorage.placement.placement import CPU
from moorage.spec import ContainerSettings, EngineName, EngineSpec, ModelSpec, RuntimeName


class Hardware(NamedTuple):
    """A host, and the type of accelerator that a replica uses there; `CPU` = its processors.

    Attributes:
        indexes: The accelerators that it uses; empty = not chosen yet.
    """

    host: HostSnapshot
    type: str
    indexes: tuple[int, ...] = ()


def image_on(
    spec: ModelSpec, engine: EngineTraits, host: HostSnapshot, kind: str, family: str | None = None
) -> Image:
    """The image that suits a host's processors, the driver of its accelerators, and their chips.

    Args:
        family: The chip family that it has to suit; None = the newest there.

    Raises:
        Failure: `NO_IMAGE` when no image can work.
    """
    device = host.first(kind)
    versions = host.engine_versions(spec.engine.custom or engine.name)
    default = versions.default_version or engine.default_version
    question = ImageQuestion(
        engine=engine.name,
        kind=kind,
        architecture=host.architecture,
        image=spec.engine.image or "",
        version=spec.engine.version or "",
        default_version=default,
        versions=versions.model_copy(update={"default_version": default or None}),
        closed=engine.name == EngineName.CUSTOM,
        runtime=device.runtime_version if device else "",
        family=host.newest_family(kind) if family is None else family,
    )
    return choose_image(question, host.catalogue)


def shared_image(spec: ModelSpec, engine: EngineTraits, places: Iterable[Hardware]) -> Image:
    """The image of a release: that of its oldest known driver and chip; newer ones run it too.

    Raises:
        Failure: `NO_IMAGE` when no image can work.
    """
    every = tuple(places)

    def age(place: Hardware) -> tuple[bool, object]:
        device = place.host.first(place.type)
        runtime = device.runtime_version if device else ""
        return not runtime, version_key(runtime)

    oldest = min(every, key=age)
    families = filter(None, (family for place in every for family in _families(place)))
    family = min(families, key=version_key, default="")
    return image_on(spec, engine, oldest.host, oldest.type, family)


def _families(place: Hardware) -> Iterator[str]:
    """The chip families of the accelerators that a replica uses."""
    for item in place.host.accelerators:
        if item.type == place.type and (not place.indexes or item.index in place.indexes):
            yield item.family


def can_share_image(spec: ModelSpec, engine: EngineTraits, one: Hardware, other: Hardware) -> bool:
    """Whether containers on both can start from one image.

    On equal accelerators they can, since drivers run images for older ones.
    """
    if _variant(one) == _variant(other):
        return True
    try:
        images = [image_on(spec, engine, place.host, place.type) for place in (one, other)]
    except Failure:
        return False
    return images[0].reference == images[1].reference


def _variant(hardware: Hardware) -> tuple[str, str]:
    """The accelerator type, and the variant of its images where it has several."""
    host, kind, _ = hardware
    device = host.first(kind)
    return kind, cann_variant(device.family)[0] if device and kind == CANN else ""


def choose_runtime(
    spec: ModelSpec, engine: EngineTraits, host: HostSnapshot, accelerator_type: str
) -> RuntimeName:
    """The runtime for an engine on a host: a container if an image is known, else a process.

    Raises:
        Refusal: `ENGINE` when no runtime can run it, with the reason for each.
    """
    wanted = spec.engine.runtime
    reasons: list[str] = []
    for name in (RuntimeName.DOCKER, RuntimeName.PROCESS):
        if wanted not in (RuntimeName.AUTO, name):
            continue
        obstacle = _obstacle(spec, engine, host, accelerator_type, name)
        if not obstacle:
            return name
        reasons.append(f"{name}: {obstacle}")
    raise Refusal(Reason.ENGINE, "; ".join(reasons))


def _obstacle(
    spec: ModelSpec,
    engine: EngineTraits,
    host: HostSnapshot,
    accelerator_type: str,
    name: RuntimeName,
) -> str:
    if name not in host.runtimes:
        return "not available on this host"
    if name == RuntimeName.PROCESS:
        return _no_process(spec, engine, host, accelerator_type)
    if accelerator_type != CPU and (refusal := device_kind(accelerator_type).refusal):
        return refusal
    try:
        image_on(spec, engine, host, accelerator_type)
    except Failure as failure:
        return failure.detail
    return ""


def _no_process(
    spec: ModelSpec, engine: EngineTraits, host: HostSnapshot, accelerator_type: str
) -> str:
    if spec.engine.image and spec.engine.runtime == RuntimeName.AUTO:
        return "the spec names an image"
    if spec.engine.container != ContainerSettings():
        return "`engine.container` asks for a container"
    if accelerator_type != CPU and (refusal := process_refusal(accelerator_type)):
        return refusal
    if spec.engine.packages:
        return "engine.packages are installed in a container, never on a host"
    if spec.engine.custom and spec.engine.runtime == RuntimeName.AUTO:
        return f"{spec.engine.custom} comes in an image"
    if spec.engine.command or spec.engine.entrypoint or spec.engine.custom:
        return ""
    installed = host.program(engine.name)
    wanted = spec.engine.version or host.engine_versions(engine.name).default_version
    number = engine.argument_version
    if installed and wanted and installed.version and number(installed.version) != number(wanted):
        return f"{engine.program} {installed.version} is installed, {wanted} is requested"
    if lacks_type(installed, accelerator_type):
        return f"{engine.program}, as it is installed, does not compute on {accelerator_type}"
    return "" if installed else f"{engine.program} is not installed"


def lacks_type(program: Program | None, accelerator_type: str) -> bool:
    """Whether an installed program is known not to compute on a type of accelerator."""
    return bool(program and program.computes_on and accelerator_type not in program.computes_on)


def program_version(spec: EngineSpec, engine: EngineTraits, host: HostSnapshot) -> str:
    """The version of the program that a host would start; empty = unknown."""
    if spec.command or spec.entrypoint or spec.custom:
        return spec.version or ""
    installed = host.program(engine.name)
    return installed.version if installed else ""


def alike(host: HostSnapshot, kind: str) -> tuple[object, ...]:
    """A key, equal for hosts on which an engine starts the same way on an accelerator type.

    It contains ids of objects that hosts share: callers that keep the key must keep the host.
    """
    architecture, runtimes, programs, engines, catalogue, accelerators = _traits(fields(host))
    own = [device for device in accelerators if device.type == kind]
    version = own[0].runtime_version if own else None
    families = frozenset(device.family for device in own)
    engines_id = id(engines) if engines else 0
    catalogue_id = id(catalogue) if catalogue else 0
    return kind, architecture, runtimes, programs, version, families, engines_id, catalogue_id


_traits = itemgetter("architecture", "runtimes", "programs", "engines", "catalogue", "accelerators")


class ImagesThere:
    """Finds the hosts that have the engine's image; chooses the image once for equal hosts."""

    def __init__(self, spec: ModelSpec, engine: EngineTraits) -> None:
        self._spec, self._engine = spec, engine
        self._places: dict[tuple[object, ...], tuple[HostSnapshot, frozenset[str]]] = {}

    def on(self, host: HostSnapshot, kind: str) -> bool:
        """Whether a host has the image for a type of accelerator, or for its processors."""
        return bool(host.images) and not host.images.isdisjoint(self._places_of(host, kind))

    def _places_of(self, host: HostSnapshot, kind: str) -> frozenset[str]:
        key = (*alike(host, kind), id(host.registries))
        if key not in self._places:
            places = frozenset[str]()
            with suppress(Failure):
                image = image_on(self._spec, self._engine, host, kind)
                places = frozenset(host.registries.places(image.reference))
            self._places[key] = host, places
        return self._places[key][1]
