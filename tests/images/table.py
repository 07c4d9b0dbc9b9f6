"""The image table as text: hardware x driver x engine -> image, or why there is none."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from moorage.common.failures import Failure
from moorage.common.versions import version_key
from moorage.images import catalogue
from moorage.images.catalogue import VARIANTS, runner_rows
from moorage.images.choice import ImageQuestion, choose_image
from moorage.images.image import Image
from moorage.inventory.fleet_engines import CatalogueRow
from moorage.spec import EngineName

DEFAULT_VERSION = "0.32.0"
FILE = Path(__file__).parent / "data" / "runner-0.1.32.csv"
"""What `gpustack-runner` 0.1.32 lists for vLLM; the package itself may change any day."""

CATALOGUE = tuple(row for row in catalogue.CATALOGUE if row.engine == EngineName.VLLM)
"""vLLM's official rows: they alone have runtimes and variants to choose among."""

VERY_OLD = "0.8.5"
"""An engine version of rows that name no first one."""

NO_IMAGES = ("neuware", "xpu")
"""Accelerator types for which nobody publishes vLLM."""

ARCHITECTURES = ("amd64", "arm64")


@dataclass(frozen=True, slots=True)
class Wish:
    """One question to the table."""

    kind: str
    architecture: str
    runtime: str = ""
    version: str = ""
    family: str = ""
    engine: EngineName = EngineName.VLLM

    @property
    def question(self) -> ImageQuestion:
        """It as the image step asks it."""
        return ImageQuestion(
            engine=self.engine,
            kind=self.kind,
            architecture=self.architecture,
            version=self.version,
            default_version=DEFAULT_VERSION,
            runtime=self.runtime,
            family=self.family,
        )

    def answer(self, more: Sequence[CatalogueRow]) -> Image | Failure:
        """As the image step answers it on a host whose survey found these other images."""
        fitting = tuple(
            row
            for row in more
            if row.accelerator_type == self.kind and self.architecture in row.architectures
        )
        try:
            return choose_image(self.question, fitting)
        except Failure as failure:
            return failure


def everything() -> tuple[CatalogueRow, ...]:
    """Our own rows and those of the file."""
    return (*CATALOGUE, *runner_catalogue())


def runner_catalogue() -> tuple[CatalogueRow, ...]:
    """The rows of the file."""
    with FILE.open() as file:
        records = list(csv.DictReader(file))
    return runner_rows(
        {**record, "service": "vllm", "platform": f"linux/{cpu}"}
        for record in records
        for cpu in record["platforms"].split()
    )


def by_driver(rows: Sequence[CatalogueRow]) -> Iterator[Wish]:
    """Every kind of hardware with every kind of driver, no engine version stated."""
    kinds = {row.accelerator_type for row in rows} | set(NO_IMAGES)
    for kind in sorted(kinds):
        for family in _chips(kind):
            for cpu in ARCHITECTURES:
                for runtime in drivers(kind, rows):
                    yield Wish(kind, cpu, runtime, family=family)
    yield Wish("cuda", "ppc64le", "13.0")
    for kind in ("cuda", "rocm", "cpu"):
        yield Wish(kind, "amd64", engine=EngineName.TRANSFORMERS)


def by_row(rows: Sequence[CatalogueRow]) -> Iterator[Wish]:
    """Every row by its engine version, on a host whose driver runs just its runtime."""
    for row in rows:
        for cpu in row.architectures:
            version = row.since or VERY_OLD
            yield Wish(row.accelerator_type, cpu, row.runtime, version, _chip(row.variant))


def drivers(kind: str, rows: Sequence[CatalogueRow]) -> list[str]:
    """An older major version, an older minor, each that images are built for, newer ones, none."""
    built = {row.runtime for row in rows if row.accelerator_type == kind and row.runtime}
    if not built:
        return [""]
    ordered = sorted(built, key=version_key)
    (major, minor), last = _numbers(ordered[0]), _numbers(ordered[-1])
    around = {f"{major - 1}.0", f"{last[0]}.{last[1] + 1}", f"{last[0] + 1}.0"}
    if minor:
        around.add(f"{major}.{minor - 1}")
    return [*sorted(built | around, key=version_key), ""]


def rendered(wishes: Iterable[Wish], more: Sequence[CatalogueRow]) -> str:
    """One line a wish; hosts of both architectures share a line where they get the same."""
    merged: dict[tuple[Wish, str], list[str]] = {}
    for wish in wishes:
        key = (replace(wish, architecture=""), _outcome(wish.answer(more)))
        cpus = merged.setdefault(key, [])
        cpus += [wish.architecture] * (wish.architecture not in cpus)
    lines = [("hardware", "cpu", "driver runs", "engine", "image"), ("",) * 5]
    for (wish, outcome), cpus in merged.items():
        hardware = f"{wish.kind} {wish.family}".strip()
        engine = f"{wish.engine} {wish.version}".strip()
        lines.append((hardware, " ".join(cpus), wish.runtime or "not known", engine, outcome))
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "".join(
        "  ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[4]]).rstrip()
        + "\n"
        for line in lines
    )


def _outcome(answer: Image | Failure) -> str:
    if isinstance(answer, Failure):
        return f"NONE: {answer.detail}"
    return f"{answer.reference} ({answer.reason})"


def _chips(kind: str) -> list[str]:
    return [_chip(variant) for variant in VARIANTS] if kind == "cann" else [""]


def _chip(variant: str) -> str:
    """A chip of a variant of CANN, as its host reports it."""
    first = {"910": "910ProA", "a3": "910_9391"}
    known = first.get(variant) or VARIANTS.get(variant, "").split(" ")[0]
    return f"Ascend{known}" if variant else ""


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)
