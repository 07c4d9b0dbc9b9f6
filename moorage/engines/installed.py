"""An engine's versions on a host, its status there, and the disk space that it takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Literal

from moorage.common.values import Value
from moorage.engines.base import Engine
from moorage.engines.packages import PACKAGES
from moorage.images.catalogue import tagged_version
from moorage.inventory.snapshot import HostSnapshot
from moorage.spec import EngineName


class ImageSize(Value):
    """An image on a host: its references and digests, and sizes from the Docker daemon.

    `bytes` are those of all its layers, `shared` those that it shares with other images.
    """

    identity: str
    names: frozenset[str]
    bytes: int
    shared: int


class CacheSize(Value):
    """A folder with an engine's compiled code for a model.

    Attributes:
        folder: Its name, which begins with the engine's.
        whole: Whether all of it was counted; counting stops at a limit.
    """

    model: str
    folder: str
    bytes: int
    whole: bool = True


class InstalledVersion(Value):
    """A version of an engine on a host.

    Attributes:
        version: Empty = unknown.
        form: `package` = an environment that moorage installed; `program` = found on the host.
        name: Reference of the image, or path of the program.
        bytes: Bytes on disk; None = unknown.
        shared: Bytes of the layers that it shares with other images.
    """

    engine: EngineName
    version: str
    form: Literal["image", "package", "program"]
    name: str
    bytes: int | None = None
    shared: int = 0


class HostDisk(Value):
    """The disk space that all engines take on a host; None = unknown."""

    images: tuple[ImageSize, ...] | None = None
    packages: tuple[InstalledVersion, ...] = ()
    caches: tuple[CacheSize, ...] | None = None


NOT_MEASURED = HostDisk()


class DiskUse(Value):
    """Bytes that an engine takes on a host; None = unknown. Shared layers are counted once."""

    images: int | None
    packages: int
    caches: int | None

    @property
    def total(self) -> int:
        """Total of the known bytes."""
        return (self.images or 0) + self.packages + (self.caches or 0)


def image_version(reference: str, engine: Engine, host: HostSnapshot) -> str:
    """The version of an engine in an image, by the fleet, else by the tag; empty = none."""
    for version, own in host.engine_versions(engine.name).versions.items():
        if own.image and reference in host.registries.places(own.image):
            return version
    return tagged_version(reference, engine.name)


def installed_versions(
    engine: Engine, host: HostSnapshot, disk: HostDisk = NOT_MEASURED
) -> tuple[InstalledVersion, ...]:
    """The versions of an engine on a surveyed host, with the disk space of each."""
    packages = [one for one in disk.packages if one.engine == engine.name]
    program = host.program(engine.name)
    found: list[InstalledVersion] = []
    if program and program.path not in {one.name for one in packages}:
        there = {"version": program.version, "form": "program", "name": program.path}
        found = [InstalledVersion.model_validate({"engine": engine.name, **there})]
    return (*found, *packages, *_images(engine, host, disk))


def caches_of(engine: Engine, disk: HostDisk) -> tuple[CacheSize, ...]:
    """The folders with an engine's compiled code."""
    return tuple(one for one in disk.caches or () if one.folder.startswith(f"{engine.name}-"))


def disk_use(engine: Engine, host: HostSnapshot, disk: HostDisk) -> DiskUse:
    """The disk space that an engine takes on a host.

    Docker reports how much of an image is shared, but not with which images. So the largest shared
    size is counted once, which is exact if all images of an engine have the same base.
    """
    versions = installed_versions(engine, host, disk)
    images = [one for one in versions if one.form == "image"]
    own = sum((one.bytes or 0) - one.shared for one in images)
    shared = max((one.shared for one in images), default=0)
    return DiskUse(
        images=None if disk.images is None else own + shared,
        packages=sum(one.bytes or 0 for one in versions if one.form == "package"),
        caches=None if disk.caches is None else sum(one.bytes for one in caches_of(engine, disk)),
    )


def _images(engine: Engine, host: HostSnapshot, disk: HostDisk) -> Iterable[InstalledVersion]:
    """One entry for each image that has a version, by its shortest name."""
    sizes = {name: size for size in disk.images or () for name in size.names}
    found: dict[str, InstalledVersion] = {}
    for name, version in _versions_by_name(engine, host):
        size = sizes.get(name)
        image = InstalledVersion(
            engine=engine.name,
            version=version,
            form="image",
            name=name,
            bytes=size.bytes if size else None,
            shared=size.shared if size else 0,
        )
        found.setdefault(size.identity if size else version, image)
    return found.values()


def _versions_by_name(engine: Engine, host: HostSnapshot) -> Iterator[tuple[str, str]]:
    for name in sorted(host.images, key=lambda name: (len(name), name)):
        if version := image_version(name, engine, host):
            yield name, version


class EngineState(StrEnum):
    """The first words of a status."""

    RUNNING = "Running"
    ERROR = "Error"
    NOT_INSTALLED = "Not Installed"
    INSTALLING = "Installing"


class EngineStatus(Value):
    """A state and its details; `parse` is the inverse of `str`."""

    state: EngineState
    details: str = ""

    def __str__(self) -> str:
        """`Running`, or with details `Running: 0.32.0`."""
        return f"{self.state}: {self.details}" if self.details else str(self.state.value)

    @classmethod
    def parse(cls, text: str) -> EngineStatus:
        """Read a status; empty = not installed, an unknown text becomes the details of an error."""
        name, _, details = text.partition(": ")
        if name in set(EngineState):
            return cls(state=EngineState(name), details=details)
        return cls(state=EngineState.ERROR if text else EngineState.NOT_INSTALLED, details=text)


def engine_status(engine: Engine, host: HostSnapshot) -> EngineStatus:
    """The status of an engine on a surveyed host, from its program and images there."""
    if host.unreachable:
        return EngineStatus(state=EngineState.ERROR, details=host.unreachable)
    found = [
        f"{one.version or 'version unknown'} as {'an' if one.form == 'image' else 'a'} {one.form}"
        for one in installed_versions(engine, host)
    ]
    if found:
        return EngineStatus(state=EngineState.RUNNING, details=", ".join(dict.fromkeys(found)))
    if engine.name == EngineName.CUSTOM:
        return EngineStatus(state=EngineState.NOT_INSTALLED, details="it is whatever a spec names")
    why = ["package not installed"] if engine.name in PACKAGES else []
    why += ["no image here"] if host.docker or not why else []
    return EngineStatus(state=EngineState.NOT_INSTALLED, details=", ".join(why))
