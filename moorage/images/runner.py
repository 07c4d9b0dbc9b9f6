"""Rows of the catalogue of GPUStack's runner images, from the records of its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.inventory.catalogue import CatalogueRow
from moorage.spec import EngineName

KINDS = {"dtk": "dcu"}
"""Accelerator types that have another name here."""


def runner_rows(
    records: Iterable[Mapping[str, Any]], *, kinds: Mapping[str, str] = KINDS
) -> tuple[CatalogueRow, ...]:
    """The rows that records of gpustack-runner stand for; services that are no engine are left out.

    Args:
        records: With the keys `backend` (accelerator type), `backend_version` (its runtime),
            `backend_variant`, `service` (the engine), `service_version`, `platform`
            (`linux/amd64`), `docker_image` and `deprecated`.
        kinds: What an accelerator type is called here, where it differs.
    """
    engines = {name.value: name for name in EngineName}
    return tuple(
        CatalogueRow(
            engine=engines[record["service"]],
            accelerator_type=kinds.get(record["backend"], record["backend"]),
            architectures=(record["platform"].rpartition("/")[2],),
            template=record["docker_image"],
            publisher="an image of GPUStack's runner catalogue",
            runtime=record["backend_version"],
            variant=record.get("backend_variant") or "",
            since=record["service_version"],
            deprecated=bool(record.get("deprecated")),
        )
        for record in records
        if record["service"] in engines
    )
