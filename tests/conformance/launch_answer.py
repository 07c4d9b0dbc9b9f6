"""What a deploy's launch plan says about a launch case, in the schema of its `expected`.

`plan_launch` makes the plan, as it does for the step `plan`. Where moorage does a thing on purpose
in another way than GPUStack, `launch_world.py` and `launch_read.py` translate it, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from moorage.common.failures import Failure
from moorage.common.values import Origin
from moorage.engines.plan import plan_launch
from moorage.images.image import Image as ChosenImage
from moorage.placement.placement import Placed
from tests.conformance.launch_read import Reading
from tests.conformance.launch_world import a_placed, position_of

Json = Mapping[str, Any]
Image = Callable[[Json], tuple[str, str]]
"""Reference and engine version for a case's input; empty where nobody knows.

Raises:
    Failure: When there is no image.
"""

LEDGER = "0" * 32

CLASSES = {
    "data parallel size .* is requested, the hosts take": ("dp_mismatch",),
    "which then have to be equal": ("uneven_hosts",),
    "goes with data parallel size|local ranks are requested": ("dp_mismatch", "uneven_hosts"),
    "does not fill hosts of|cannot be split into ranks of": ("dp_mismatch", "uneven_hosts"),
    "No closing quotation|No escaped character": ("unbalanced_quotes",),
    "no image": ("no_image",),
}
"""Our words for a refusal, and the classes that it meets: several where the cases leave it open."""


def answer(given: Json, image: Image) -> dict[str, Any]:
    """Everything that a case may expect; a refusal by its class alone."""
    try:
        return {"error": None, **_answer(given, image)}
    except Failure as failure:
        return {"error": error_classes(failure.detail)}
    except ValidationError as error:  # the spec itself is refused
        return {"error": error_classes("; ".join(one["msg"] for one in error.errors()))}


def error_classes(detail: str) -> tuple[str, ...]:
    """The classes that our words for a refusal meet."""
    for words, names in CLASSES.items():
        if re.search(words, detail):
            return names
    return (f"refused: {detail}",)


def _answer(given: Json, image: Image) -> dict[str, Any]:
    reference, version = image(given)
    placed = a_placed(given)
    chosen = ChosenImage(
        reference=reference, engine_version=version, origin=Origin.DEFAULT, reason=""
    )
    caches = given.get("cache_dir") or ""
    caches = "" if caches.startswith("/read-only") else caches
    plan = plan_launch(placed, chosen, LEDGER, caches)
    at = position_of(given["placement"])
    reading = Reading(given, plan, placed.placement.seats[at])
    found: dict[str, Any] = {
        **reading.words(),
        "script": reading.main.preparation is not None or _is_empty_script(given),
        "env": reading.environment(),
        "image": reading.main.image,
        "engine_version": plan.engine_version or None,
        "derived_max_model_len": _longest(given, placed),
        "release_name_suffix": f"-f{at - 1}" if at else "",
        "container": reading.container(),
        "ray": reading.ray() if reading.is_clustered else None,
    }
    if found["ray"] and at:
        found["command"] = found["ray"]["command"]
        found["container"]["ports"] = found["ray"]["ports"]
    return found


def _is_empty_script(given: Json) -> bool:
    """GPUStack's script also runs where the list of packages is there and empty; ours does not."""
    return (given.get("options") or {}).get("extra_packages") == ""


def _longest(given: Json, placed: Placed) -> int | None:
    model = given["model"]
    unknown = model.get("config") is None and not model.get("derived_max_model_len")
    return None if unknown else placed.profile.context
