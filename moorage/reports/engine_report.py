"""Report on an engine: its hosts, its disk use there, and the releases that use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from moorage.common.units import human_bytes
from moorage.common.values import Value
from moorage.engines.base import Engine
from moorage.engines.installed import (
    CacheSize,
    DiskUse,
    HostDisk,
    InstalledVersion,
    caches_of,
    disk_use,
    installed_versions,
)
from moorage.engines.packages import PACKAGES
from moorage.images.catalogue import CATALOGUE
from moorage.inventory.snapshot import HostSnapshot
from moorage.operations.engine_installation import hosts_with
from moorage.releases.release_row import ReleaseRow
from moorage.reports.document import Document, Section, facts
from moorage.spec import EngineName, Mode
from moorage.spec.ray_cluster import NOT_WITH as ON_CLUSTERS

UNKNOWN = "?"


class HostReport(Value):
    """An engine on one host.

    Attributes:
        status: A value of `EngineStatus`.
        used_by: Releases that run it on the host.
    """

    status: str
    versions: tuple[InstalledVersion, ...]
    caches: tuple[CacheSize, ...]
    disk: DiskUse
    used_by: tuple[str, ...]


class EngineReport(Value):
    """An engine on all hosts.

    Attributes:
        version: The version that moorage was tested with.
        runs_in: `container`, `process`, `cluster` (Ray).
        images: The official images of that version, by accelerator type.
        used_by: Hosts, or the Ray cluster, by release.
    """

    engine: EngineName
    version: str
    program: str
    modes: tuple[Mode, ...]
    formats: tuple[str, ...]
    accelerators: tuple[str, ...]
    runs_in: tuple[str, ...]
    images: dict[str, str]
    hosts: dict[str, HostReport]
    used_by: dict[str, tuple[str, ...]]


def engine_report(
    engine: Engine,
    hosts: Sequence[HostSnapshot],
    status: Mapping[str, str],
    disks: Mapping[str, HostDisk],
    rows: Sequence[ReleaseRow],
) -> EngineReport:
    """Describe an engine; `rows` are the releases that still need their engines."""
    used_by = {row.id: found for row in rows if (found := hosts_with(engine, row))}
    return EngineReport(
        engine=engine.name,
        version=engine.default_version,
        program=engine.program,
        modes=tuple(sorted(engine.modes)),
        formats=tuple(sorted(engine.formats)) if engine.predictable else (),
        accelerators=(*sorted(engine.accelerator_types), *["cpu"] * engine.runs_on_cpu),
        runs_in=tuple(_places(engine)),
        images=_images(engine),
        hosts={
            host.name: HostReport(
                status=status[host.name],
                versions=installed_versions(engine, host, disks[host.name]),
                caches=caches_of(engine, disks[host.name]),
                disk=disk_use(engine, host, disks[host.name]),
                used_by=tuple(name for name, found in used_by.items() if host.name in found),
            )
            for host in hosts
        },
        used_by=used_by,
    )


def _places(engine: Engine) -> Iterator[str]:
    yield "container"
    if engine.name in PACKAGES or engine.name == EngineName.CUSTOM:
        yield "process"
    if engine.name in ON_CLUSTERS:
        yield "cluster"


def _images(engine: Engine) -> dict[str, str]:
    version = engine.default_version
    # The first row of a type has its newest runtime: reversed, it overwrites the others.
    rows = [row for row in reversed(CATALOGUE) if row.engine == engine.name and row.has(version)]
    return {row.accelerator_type: row.reference(version) for row in rows}


ENGINE_COLUMNS = ("engine", "host", "status", "disk", "used by")


def engine_rows(reports: Sequence[EngineReport]) -> tuple[tuple[str, ...], ...]:
    """One row for each host of each engine, narrow enough for a terminal."""
    return tuple(
        (
            "" if at else report.engine.value,
            host,
            found.status,
            _disk(found.disk),
            ", ".join(found.used_by),
        )
        for report in reports
        for at, (host, found) in enumerate(report.hosts.items())
    )


def engine_document(report: EngineReport) -> Document:
    """The report on one engine as a document."""
    on_disk = [
        (host, f"{one.version} {one.form}".strip(), one.name, _size(one.bytes, one.shared))
        for host, found in report.hosts.items()
        for one in found.versions
    ]
    on_disk += [
        (host, "compiled for", one.model, ("" if one.whole else "over ") + human_bytes(one.bytes))
        for host, found in report.hosts.items()
        for one in found.caches
    ]
    return Document(
        title=f"{report.engine} {report.version}".strip(),
        sections=(
            facts(
                (
                    ("serves", ", ".join(report.modes)),
                    ("loads", ", ".join(report.formats) or "anything"),
                    ("accelerators", ", ".join(report.accelerators)),
                    ("runs in", ", ".join(report.runs_in)),
                    *((f"image for {kind}", name) for kind, name in sorted(report.images.items())),
                    *((f"status on {name}", one.status) for name, one in report.hosts.items()),
                    *((name, f"on {', '.join(on)}") for name, on in report.used_by.items()),
                )
            ),
            Section(
                title="On disk",
                header=("host", "what", "name", "size"),
                rows=tuple(on_disk),
            ),
        ),
    )


def _disk(disk: DiskUse) -> str:
    known = human_bytes(disk.total) if disk.total else ""
    unknown = disk.images is None or disk.caches is None
    return f"{known} + {UNKNOWN}" if known and unknown else UNKNOWN if unknown else known or "-"


def _size(size: int | None, shared: int) -> str:
    if size is None:
        return UNKNOWN
    return human_bytes(size) + (f", {human_bytes(shared)} shared" if shared else "")
