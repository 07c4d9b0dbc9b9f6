"""Whatever is proposed passes the gate of the commit, and what runs is what is claimed."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.common.failures import Failure
from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import FleetSnapshot
from moorage.models.profile import ModelProfile
from moorage.placement.demand import Subject
from moorage.placement.fit import misfits
from moorage.placement.placement import Placement
from moorage.placement.propose import propose
from moorage.spec import ModelSpec, Policy
from tests.placement.worlds import fleets, profiles, specs

caches = st.sampled_from([None, {"ram": "3GiB"}, {"ram": "62GiB"}, {"ratio": 0.9}, {"ratio": 4.0}])


@st.composite
def wishes(draw: st.DrawFn) -> ModelSpec:
    """Specs with everything that takes memory."""
    spec = draw(specs).model_dump(mode="json", exclude_defaults=True)
    cache, place = draw(caches), spec.setdefault("placement", {})
    spec["extended_kv_cache"] = cache
    place["policy"] = draw(st.sampled_from(list(Policy)))
    place["across_hosts"] = draw(st.booleans())
    place["overcommit"] = draw(st.booleans())
    if place["across_hosts"] or place["policy"] == Policy.BASELINE:
        place.pop("hosts", None)
    if isinstance(place.get("accelerators"), list):
        place["accelerators_per_replica"] = draw(st.sampled_from([None, 1, 2]))
    if draw(st.booleans()):
        spec["lora"] = [{"name": "l1", "source": "hf://org/l1"}]
    if draw(st.booleans()):
        spec["speculative"] = {"method": "draft_model", "model": "hf://org/draft", "tokens": 3}
    return ModelSpec.model_validate(spec)


def proposed(subject: Subject, fleet: FleetSnapshot) -> Placement | None:
    try:
        return propose(subject, fleet, ENGINES)
    except Failure:
        return None


@settings(max_examples=300)
@given(fleets, wishes(), profiles, st.sampled_from([0, GIB, 20 * GIB]))
def test_what_is_proposed_passes_the_gate(
    fleet: FleetSnapshot, spec: ModelSpec, profile: ModelProfile, files: int
) -> None:
    subject = Subject(spec, profile, companion_bytes=files, adapter_bytes=files)
    placement = proposed(subject, fleet)
    for host in fleet.hosts if placement else ():
        assert placement
        claims = [claim for claim in placement.claims if claim.host == host.name]
        assert not misfits(host, claims, overcommit=spec.placement.overcommit)
    for seat in placement.seats if placement else ():
        assert placement
        needs = _cache_bytes(placement, spec, seat.accelerator_type, sum(seat.accelerator_bytes))
        assert seat.ram_bytes >= needs


def _cache_bytes(placement: Placement, spec: ModelSpec, kind: str, claimed: int) -> int:
    """RAM that the engine takes for the extended cache, on top of the accelerators of a seat."""
    cache: Any = spec.extended_kv_cache
    if cache is None or kind not in ("cuda", "rocm") or placement.engine != "vllm":
        return 0
    return int(cache.ram or claimed * cache.ratio)
