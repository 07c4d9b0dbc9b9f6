"""Runs placement cases of the baseline: python -m tests.conformance.placement FILE.

Prints each difference with the id of its case and ends with the line `N passed, N failed`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from moorage.placement.baseline import (
    BaselineRequest,
    CacheInRam,
    Decision,
    ManualAccelerator,
    Strategy,
    decide,
)
from moorage.placement.baseline.estimate import memory_claim
from moorage.placement.candidate import Candidate, Share
from moorage.placement.claims import Claim, Resource
from moorage.placement.snapshot import Accelerator, HostSnapshot

Case = Mapping[str, Any]
Difference = tuple[str, Any, Any]


def cases(file: Path) -> list[dict[str, Any]]:
    loaded: dict[str, list[dict[str, Any]]] = json.loads(file.read_text())
    return loaded["cases"]


def differences(case: Case) -> list[Difference]:
    try:
        request = a_request(case)
        hosts, same_model = a_fleet(case)
        return list(_compare(case, request, decide(request, hosts, same_model)))
    except Exception as error:
        return [("exception", "none", repr(error))]


def a_request(case: Case) -> BaselineRequest:
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
        parameters=tuple(request.get("backend_parameters") or ()),
        engine_version=request.get("backend_version"),
        manual=tuple(
            ManualAccelerator(item["worker"], item["type"], item["index"])
            for item in request.get("manual_gpus") or ()
        ),
        accelerators_per_replica=request.get("gpus_per_replica"),
        replicas=1 if request.get("replicas") is None else request["replicas"],
        distributed_allowed=True if allowed is None else allowed,
        cache_in_ram=_cache(request.get("extended_kv_cache")),
        strategy=Strategy(request.get("strategy") or "spread"),
    )


def a_fleet(case: Case) -> tuple[list[HostSnapshot], set[str]]:
    """The hosts with their claims, and the releases that serve the model itself."""
    claims: dict[str, list[Claim]] = {}
    same_model = set()
    for number, entry in enumerate(case.get("running") or ()):
        release = f"running-{number}"
        claims.setdefault(entry["worker"], []).extend(_claims(entry, release))
        if entry.get("same_model"):
            same_model.add(release)
    return [_host(item, claims.get(item["name"], ())) for item in case["fleet"]], same_model


def main(file: Path) -> int:
    passed = failed = 0
    for case in cases(file):
        found = differences(case)
        passed, failed = passed + (not found), failed + bool(found)
        for field, expected, got in found:
            print(f"{case['id']} {field}: expected {expected}, got {got}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


def _host(item: Mapping[str, Any], claims: Sequence[Claim]) -> HostSnapshot:
    ram = item.get("ram") or {}
    return HostSnapshot(
        name=item["name"],
        address=item.get("address") or "local",
        labels=item.get("labels") or {},
        ram_total=ram.get("total") or 0,
        ram_free=ram.get("total") or 0,
        ram_reserve=ram.get("reserved") or 0,
        accelerator_reserve=item.get("vram_reserved_per_gpu") or 0,
        accelerators=tuple(
            Accelerator(
                type=gpu["type"],
                index=gpu["index"],
                name=gpu.get("name") or "",
                memory_total=gpu["memory_total"],
                memory_free=gpu["memory_total"],
            )
            for gpu in item.get("gpus") or ()
        ),
        claims=tuple(claims),
    )


def _claims(entry: Mapping[str, Any], release: str) -> Iterator[Claim]:
    """A port too, so that what holds neither accelerators nor RAM is still seen to run."""
    host = entry["worker"]
    for index, amount in (entry.get("vram_by_gpu") or {}).items():
        yield Claim(
            host=host,
            resource=Resource.ACCELERATOR,
            index=int(index),
            amount=amount,
            release=release,
        )
    yield Claim(host=host, resource=Resource.RAM, amount=entry.get("ram") or 0, release=release)
    yield Claim(host=host, resource=Resource.PORT, amount=1, release=release)


def _cache(entry: Mapping[str, Any] | None) -> CacheInRam | None:
    if not entry:
        return None
    return CacheInRam(
        enabled=bool(entry.get("enabled")),
        gib=entry.get("ram_size_gib"),
        ratio=entry.get("ram_ratio", CacheInRam().ratio),
    )


def _compare(case: Case, request: BaselineRequest, got: Decision) -> Iterator[Difference]:
    expected = case["expected"]
    error = expected["error"]["class"] if expected.get("error") else None
    refused = got.refusal.error.value if got.refusal else None
    if error != refused:
        yield "error", error, refused
    claim = case["model"].get("vram_claim_bytes")
    if claim is not None and claim != memory_claim(request):
        yield "vram_claim_bytes", claim, memory_claim(request)
    want = [_stated(item) for item in expected.get("candidates") or ()]
    have = [_written(item) for item in got.candidates]
    for item in want:
        if item not in have:
            yield "candidate", item, "none such"
    for item in have:
        if item not in want:
            yield "candidate", "none such", item
    if len(want) != len(have):
        yield "candidates", len(want), len(have)
    chosen = expected.get("chosen")
    if chosen is not None and (got.chosen is None or have[got.chosen] != want[chosen]):
        yield "chosen", want[chosen], None if got.chosen is None else have[got.chosen]


def _stated(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "gpu_type": item["gpu_type"],
        "overcommit": bool(item.get("overcommit")),
        "shares": [_stated_share(share) for share in (item, *(item.get("followers") or ()))],
    }


def _stated_share(share: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "worker": share["worker"],
        "gpus": sorted(share["gpus"]),
        "vram_by_gpu": {int(index): taken for index, taken in share["vram_by_gpu"].items()},
        "ram": share.get("ram") or 0,
    }


def _written(item: Candidate) -> dict[str, Any]:
    return {
        "gpu_type": item.accelerator_type,
        "overcommit": item.overcommit,
        "shares": [_written_share(share) for share in item.shares],
    }


def _written_share(share: Share) -> dict[str, Any]:
    return {
        "worker": share.host,
        "gpus": list(share.accelerators),
        "vram_by_gpu": dict(zip(share.accelerators, share.accelerator_bytes, strict=True)),
        "ram": share.ram_bytes,
    }


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
