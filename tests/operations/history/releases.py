"""Two releases of one model, as they were recorded, that differ in most of what can differ."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from moorage.common.units import GIB
from moorage.engines.plan import plan_launch
from moorage.images.image import Image
from moorage.inventory.snapshot import HostSnapshot
from moorage.models.pin import AssetRole, Pin
from moorage.placement.placement import Placed, Placement
from moorage.readiness.protocol import Phase, ProbeResult, Readiness
from moorage.releases.release import Release
from moorage.spec import ModelSpec
from tests.builders import (
    LEDGER,
    NOON,
    REVISION,
    a_fleet,
    a_host,
    a_measurement,
    a_model,
    a_placement,
    a_profile,
    a_release,
    a_spec,
    an_image,
)

OTHER_REVISION = "f" * 40
POET = Pin(role=AssetRole.ADAPTER, name="poet", source="hf://org/poet", revision="a1", rank=8)


def planned(
    spec: ModelSpec,
    number: int = 1,
    *hosts: HostSnapshot,
    placement: Placement | None = None,
    image: Image | None = None,
    **changes: Any,
) -> Release:
    """A release up to its plan, on these hosts."""
    identity, image = f"{spec.name}.v{number}", image or an_image()
    fleet = a_fleet(*hosts)
    placement = placement or a_placement(spec, *fleet.hosts)
    placed = Placed(spec, a_model(), a_profile(), placement, fleet, identity)
    plan = plan_launch(placed, image, LEDGER, "/home/cache")
    values = {"profile": a_profile(), "placement": placement, "image": image, "plan": plan}
    return a_release(identity, spec=spec, **{**values, **changes})


def ran(release: Release, loaded: float = 41.5) -> Release:
    """The same release, proven and measured; `loaded` in seconds."""
    assert release.plan
    probes = (
        ProbeResult(phase=Phase.HEALTHY, seconds=loaded, attempts=20),
        ProbeResult(phase=Phase.ANSWERED, seconds=loaded + 2, attempts=1, detail="'Hello'"),
    )
    readiness = tuple(
        Readiness(workload=c.name, endpoint=c.endpoint, probes=probes, first_token_seconds=0.25)
        for c in release.plan.containers
    )
    return release.model_copy(
        update={"readiness": readiness, "finished_at": NOON + timedelta(seconds=loaded + 20)}
    )


def first() -> Release:
    spec = a_spec(
        name="llama",
        engine={"args": ["--max-num-seqs 8", "--hf-token abc"], "env": {"MODE": "one", "OLD": "x"}},
        placement={"accelerators": 1},
        secrets={"HF_TOKEN": "hub-token"},
    )
    return ran(planned(spec, 1, measured=(a_measurement(),), companions=(POET,)))


def second() -> Release:
    spec = a_spec(
        name="llama",
        engine={
            "args": ["--max-num-seqs 16", "--enforce-eager", "--hf-token def"],
            "env": {"MODE": "two", "NEW": "y"},
        },
        context=4096,
        placement={"accelerators": 2},
        secrets={"HF_TOKEN": "team-token"},
    )
    image = an_image(
        reference="vllm/vllm-openai:v0.33.0", digest=f"sha256:{'cd' * 32}", engine_version="0.33.0"
    )
    measured = a_measurement()
    halved = measured.measured.model_copy(update={"weights_bytes": 4 * GIB, "kv_tokens": 786432})
    release = planned(
        spec,
        2,
        a_host("gpu-2"),
        image=image,
        revision=OTHER_REVISION,
        companions=(POET.model_copy(update={"revision": "b2"}),),
        measured=(measured.model_copy(update={"measured": halved}),),
    )
    return ran(release, loaded=20.75)


__all__ = ["OTHER_REVISION", "REVISION", "first", "planned", "ran", "second"]
