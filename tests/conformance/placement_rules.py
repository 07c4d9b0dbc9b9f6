"""The rules of the baseline asked directly about a case, to hold the way of a deploy against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.common.units import GIB
from moorage.placement.baseline import (
    BaselineRequest,
    CacheInRam,
    Decision,
    ManualAccelerator,
    Strategy,
    decide,
)
from tests.conformance.placement_world import NAME, SHARED_RATIO, a_fleet

Case = Mapping[str, Any]


def decided(case: Case) -> Decision:
    fleet, _ = a_fleet(case)
    claims = [claim for host in fleet.hosts for claim in host.claims]
    own = {claim.release for claim in claims if claim.release.startswith(f"{NAME}.v")}
    return decide(_request(case), fleet.hosts, same_model=own)


def _request(case: Case) -> BaselineRequest:
    model, request = case["model"], case["request"]
    allowed = request.get("distributed_allowed")
    return BaselineRequest(
        weight_bytes=model.get("weight_bytes"),
        lora_bytes=model.get("lora_bytes") or 0,
        claim_override=model.get("vram_claim_override_bytes"),
        categories=tuple(model.get("categories") or ()),
        architectures=tuple(model.get("architectures") or ()),
        attention_heads=model.get("attention_heads"),
        vision_heads=model.get("vision_heads"),
        vocabulary=model.get("vocab_size"),
        parameters=tuple(entry for entry in request.get("backend_parameters") or () if entry),
        engine_version=request.get("backend_version"),
        manual=tuple(
            ManualAccelerator(item["worker"], item["type"], item["index"])
            for item in request.get("manual_gpus") or ()
        ),
        accelerators_per_replica=request.get("gpus_per_replica"),
        replicas=request.get("replicas") or 1,
        distributed_allowed=True if allowed is None else allowed,
        cache_in_ram=_cache(request.get("extended_kv_cache")),
        strategy=Strategy(request.get("strategy") or "spread"),
    )


def _cache(entry: Mapping[str, Any] | None) -> CacheInRam | None:
    if not entry:
        return None
    size = entry.get("ram_size_gib")
    return CacheInRam(
        enabled=bool(entry.get("enabled")),
        size=None if size is None else int(size * GIB),
        ratio=entry.get("ram_ratio", SHARED_RATIO),
    )
