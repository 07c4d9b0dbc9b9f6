"""The image cases of `conformance/launch.json`, answered with the policy `baseline`.

`image_answer` takes the input of any launch case that names a catalogue, and `override_answer` that
of kind `registry_override`; both give `expected` in the schema of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from moorage.fleet_engines import EngineVersion, EngineVersions
from moorage.images.catalogue import CatalogueRow
from moorage.images.question import ImageAnswer, ImageQuestion, RuntimePolicy
from moorage.images.registries import overridden
from moorage.images.resolve import resolve_image
from moorage.images.runner import runner_rows
from moorage.spec import EngineName

KINDS = ("image_resolution", "registry_override")
NO_IMAGE = {"error": {"class": "no_image"}}

Json = dict[str, Any]


def catalogue_rows(catalogues: Mapping[str, Json], name: str) -> tuple[CatalogueRow, ...]:
    """The rows of a catalogue of the file."""
    catalogue = catalogues[name]
    return _rows(tuple(catalogue["fields"]), tuple(map(tuple, catalogue["rows"])))


def image_answer(case: Json, rows: tuple[CatalogueRow, ...]) -> Json:
    """Image and engine version of a case's input, or its error."""
    answer = resolve_image(image_question(case), rows)
    if not isinstance(answer, ImageAnswer):
        return NO_IMAGE
    version = answer.engine_version or None
    return {"error": None, "image": answer.reference, "engine_version": version}


def configured_versions(engine: Mapping[str, Any]) -> EngineVersions:
    """What a case configures; of a version that is the catalogue's own, nothing counts."""
    listed = engine.get("source") in (None, "built_in")
    return EngineVersions.model_construct(
        default_version=engine.get("default_version") or None,
        versions={
            name: _version(entry, engine.get("default_entrypoint") or "", listed)
            for name, entry in (engine.get("versions") or {}).items()
        },
    )


def override_answer(case: Json) -> Json:
    """The reference after the registry rule."""
    registry = case.get("registry") or {}
    default, fallback = registry.get("default") or "", registry.get("fallback") or ""
    return {"error": None, "image": overridden(case["image"], default, fallback)}


def image_question(case: Json) -> ImageQuestion:
    """What a case's input asks; device facts come from the first accelerator that was chosen."""
    model, host, device = case["model"], case["host"], _device(case)
    return ImageQuestion(
        engine=EngineName.VLLM,
        kind=device.get("type") or "",
        architecture=host["cpu_arch"],
        image=model.get("image") or "",
        version=model.get("backend_version") or "",
        versions=configured_versions(case.get("engine") or {}),
        closed=not (case.get("engine") or {}).get("built_in", True),
        runtime=device.get("runtime_version") or "",
        family=device.get("arch_family") or "",
        policy=RuntimePolicy.BASELINE,
    )


@lru_cache
def _rows(fields: tuple[str, ...], rows: tuple[tuple[Any, ...], ...]) -> tuple[CatalogueRow, ...]:
    records = [dict(zip(fields, row, strict=True)) for row in rows]
    return runner_rows(records, kinds={})


def _device(case: Json) -> Json:
    """The first chosen accelerator of this host, else its first, else none."""
    accelerators: list[Json] = case["host"].get("accelerators") or []
    placement = case.get("placement") or {}
    seat = placement.get("leader") or {}
    if placement.get("role") == "follower":
        seat = placement["followers"][placement.get("follower_index") or 0]
    kind = placement.get("accelerator_type")
    chosen = sorted(seat.get("accelerators") or [])
    for index in chosen:
        for item in accelerators:
            if item["index"] == index and kind in (None, item["type"]):
                return item
    return accelerators[0] if accelerators else {}


def _version(entry: Json, entrypoint: str, listed: bool) -> EngineVersion:
    frameworks = entry.get("built_in_frameworks")
    return EngineVersion.model_construct(
        image=None if listed and frameworks else entry.get("image") or None,
        entrypoint=entry.get("entrypoint") or entrypoint,
        run_command="" if frameworks is not None else entry.get("run_command") or "",
    )
