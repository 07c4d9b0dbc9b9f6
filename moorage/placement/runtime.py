"""The runtime that starts an engine on a host, and the image that it starts from."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from moorage.common.failures import Failure
from moorage.common.refusal import Reason, Refusal
from moorage.common.values import fields
from moorage.common.versions import is_version, version_key
from moorage.images.catalogue import cann_variant
from moorage.images.choice import CANN, ImageQuestion, choose_image
from moorage.images.image import Image
from moorage.inventory.devices import device_kind, process_refusal
from moorage.inventory.snapshot import HostSnapshot, Program
from moorage.placement.engine import EngineTraits
from moorage.placement.placement import CPU
from moorage.placement.view import AcceleratorKind, Chip, HostView, chip_of, facts_of_chip
from moorage.spec import ContainerSettings, EngineName, EngineSpec, ModelSpec, RuntimeName


class Hardware(NamedTuple):
    """What a replica uses on a host; the chip's type is `CPU` for the host's processors."""

    host: HostSnapshot
    chip: Chip


def hardware_of(view: HostView, kind: AcceleratorKind | None) -> Hardware:
    """The hardware of a host's accelerators of one kind; None = its processors."""
    return Hardware(view.host, view.chips[kind] if kind else Chip(CPU))


def hardware_of_seat(host: HostSnapshot, type: str, accelerators: Collection[int]) -> Hardware:
    """The hardware of a seat on these accelerators; of several drivers, the oldest known one."""
    found = [
        chip_of(item)
        for item in host.accelerators
        if item.type == type and item.index in accelerators
    ]
    return Hardware(host, min(found, key=_age, default=Chip(type)))


def hardware_on(host: HostSnapshot) -> list[Hardware]:
    """All hardware of a host's accelerators that differs."""
    # Equal ones are neighbours: to hash each would take twice as long.
    unlike = (chip for chip, _ in groupby(map(facts_of_chip, host.accelerators)))
    return [Hardware(host, Chip(*facts)) for facts in dict.fromkeys(unlike)]


def image_on(spec: ModelSpec, engine: EngineTraits, hardware: Hardware) -> Image:
    """The image that suits a host's processors, and the chips and driver of its accelerators.

    Raises:
        Failure: `NO_IMAGE` when no image can work.
    """
    host, chip = hardware
    versions = host.engine_versions(spec.engine.custom or engine.name)
    default = versions.default_version or engine.default_version
    question = ImageQuestion(
        engine=engine.name,
        kind=chip.type,
        architecture=host.architecture,
        image=spec.engine.image or "",
        version=spec.engine.version or "",
        default_version=default,
        versions=versions.model_copy(update={"default_version": default or None}),
        closed=engine.name == EngineName.CUSTOM,
        runtime=chip.runtime,
        family=chip.family,
    )
    return choose_image(question, host.catalogue)


def shared_image(spec: ModelSpec, engine: EngineTraits, places: Iterable[Hardware]) -> Image:
    """The image of a release: that of its oldest known driver and chip; newer ones run it too.

    Raises:
        Failure: `NO_IMAGE` when no image can work.
    """
    every = tuple(places)
    families = filter(None, (place.chip.family for place in every))
    family = min(families, key=version_key, default="")
    oldest = min(every, key=lambda place: _age(place.chip))
    return image_on(spec, engine, Hardware(oldest.host, oldest.chip._replace(family=family)))


def _age(chip: Chip) -> tuple[bool, object]:
    return not chip.runtime, version_key(chip.runtime)


def can_share_image(spec: ModelSpec, engine: EngineTraits, one: Hardware, other: Hardware) -> bool:
    """Whether containers on both can start from one image.

    On equal accelerators they can, since drivers run images for older ones.
    """
    if image_variant(one.chip) == image_variant(other.chip):
        return True
    try:
        return image_on(spec, engine, one).reference == image_on(spec, engine, other).reference
    except Failure:
        return False


def image_variant(chip: Chip) -> tuple[str, str]:
    """The accelerator type, and the variant of its images where it has several."""
    return chip.type, cann_variant(chip.family)[0] if chip.type == CANN else ""


def choose_runtime(spec: ModelSpec, engine: EngineTraits, hardware: Hardware) -> RuntimeName:
    """The runtime for an engine on a host: a container if an image is known, else a process.

    Raises:
        Refusal: `ENGINE` when no runtime can run it, with the reason for each.
    """
    wanted = spec.engine.runtime
    reasons: list[str] = []
    for name in (RuntimeName.DOCKER, RuntimeName.PROCESS):
        if wanted not in (RuntimeName.AUTO, name):
            continue
        if not (obstacle := _obstacle(spec, engine, hardware, name)):
            return name
        reasons.append(f"{name}: {obstacle}")
    raise Refusal(Reason.ENGINE, "; ".join(reasons))


def _obstacle(spec: ModelSpec, engine: EngineTraits, hardware: Hardware, name: RuntimeName) -> str:
    if name not in hardware.host.runtimes:
        return "not available on this host"
    if name == RuntimeName.PROCESS:
        return _no_process(spec, engine, hardware)
    kind = hardware.chip.type
    if kind != CPU and (refusal := device_kind(kind).refusal):
        return refusal
    try:
        image_on(spec, engine, hardware)
    except Failure as failure:
        return failure.detail
    return ""


def _no_process(spec: ModelSpec, engine: EngineTraits, hardware: Hardware) -> str:
    host, accelerator_type = hardware.host, hardware.chip.type
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
    there = installed.version if installed else ""
    if there and wanted and not is_version(number(there), number(wanted)):
        return f"{engine.program} {there} is installed, {wanted} is requested"
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


def alike(host: HostSnapshot, chip: Chip) -> tuple[object, ...]:
    """A key, equal for hosts and chips on which an engine starts the same way.

    It contains ids of objects that hosts share: callers that keep the key must keep the host.
    """
    architecture, runtimes, programs, engines, catalogue = _traits(fields(host))
    if not (engines or catalogue):
        return chip, architecture, runtimes, programs
    ids = id(engines) if engines else 0, id(catalogue) if catalogue else 0
    return chip, architecture, runtimes, programs, *ids


_traits = itemgetter("architecture", "runtimes", "programs", "engines", "catalogue")


class ImagesThere:
    """Finds the hosts that have the engine's image; chooses the image once for equal hosts."""

    def __init__(self, spec: ModelSpec, engine: EngineTraits) -> None:
        self._spec, self._engine = spec, engine
        self._places: dict[tuple[object, ...], tuple[HostSnapshot, frozenset[str]]] = {}

    def on(self, view: HostView, kind: AcceleratorKind | None) -> bool:
        """Whether a host has the image for a kind of accelerator; None = for its processors."""
        images = view.host.images
        return bool(images) and not images.isdisjoint(self._places_of(hardware_of(view, kind)))

    def _places_of(self, hardware: Hardware) -> frozenset[str]:
        host = hardware.host
        key = (*alike(*hardware), id(host.registries))
        if key not in self._places:
            places = frozenset[str]()
            with suppress(Failure):
                image = image_on(self._spec, self._engine, hardware)
                places = frozenset(host.registries.places(image.reference))
            self._places[key] = host, places
        return self._places[key][1]
