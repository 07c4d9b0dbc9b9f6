"""The image cases of `conformance/launch.json`, answered by `resolve_image`, as for a deploy.

`image_answer` takes the input of any launch case that names a catalogue, and `override_answer` that
of kind `registry_override`; both give `expected` in the schema of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from moorage.images.catalogue import runner_rows
from moorage.images.choice import ImageQuestion, resolve_image
from moorage.images.image import Image
from moorage.inventory.fleet_engines import CatalogueRow
from moorage.inventory.registries import Registries
from moorage.spec import EngineName
from tests.conformance.launch_world import configured_versions

NO_IMAGE = {"error": {"class": "no_image"}}

Json = dict[str, Any]


def catalogue_rows(catalogues: Mapping[str, Json], name: str) -> tuple[CatalogueRow, ...]:
    """The rows of a catalogue of the file."""
    catalogue = catalogues[name]
    return _rows(tuple(catalogue["fields"]), tuple(map(tuple, catalogue["rows"])))


def image_answer(case: Json, rows: tuple[CatalogueRow, ...]) -> Json:
    """Image and engine version of a case's input, or its error."""
    answer = resolve_image(image_question(case), rows)
    if not isinstance(answer, Image):
        return NO_IMAGE
    version = answer.engine_version or None
    return {"error": None, "image": answer.reference, "engine_version": version}


def override_answer(case: Json) -> Json:
    """The reference after the registry rule: the first place that a pull would try.

    GPUStack's fallback is a registry that was found to be reachable, for images of its own alone;
    ours is the second place of every image, tried where the first cannot be reached.
    """
    registry = case.get("registry") or {}
    default, fallback = (registry.get(name) or "" for name in ("default", "fallback"))
    # Not validated: a fleet file may not write everything that a case does.
    places = Registries.model_construct(default=default.strip() or None, fallback=fallback or None)
    found = places.places(case["image"])
    second = not default.strip() and case["image"].startswith("gpustack")
    return {"error": None, "image": found[-1 if second else 0]}


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
    )


@lru_cache
def _rows(fields: tuple[str, ...], rows: tuple[tuple[Any, ...], ...]) -> tuple[CatalogueRow, ...]:
    records = [dict(zip(fields, row, strict=True)) for row in rows]
    return runner_rows(records)


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
