from __future__ import annotations

from typing import Any

from moorage.releases.routing import Route, models_listing
from moorage.releases.states import ReleaseState
from tests.builders import NOON


def test_the_listing_has_the_shape_of_openai_with_adapters_as_models_of_their_own() -> None:
    route = Route(
        model="tiny",
        release="tiny.v3",
        state=ReleaseState.RUNNING,
        endpoints=("http://gpu-1:40000",),
        adapters=("poet",),
        since=NOON,
    )
    common: dict[str, Any] = {
        "object": "model",
        "created": int(NOON.timestamp()),
        "owned_by": "moorage",
        "release": "tiny.v3",
        "state": "running",
        "endpoints": ["http://gpu-1:40000/v1"],
    }
    assert models_listing([route]) == {
        "object": "list",
        "data": [{"id": "tiny", **common}, {"id": "poet", **common, "parent": "tiny"}],
    }
    assert models_listing([]) == {"object": "list", "data": []}
