"""Small fleets and requests, with round numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.common.units import GIB
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import Accelerator, HostSnapshot
from moorage.placement.baseline import BaselineRequest, Decision, ManualAccelerator, decide

Shown = tuple[str, tuple[int, ...], tuple[int, ...]]


def a_request(claim: int = 0, *parameters: str, **changes: Any) -> BaselineRequest:
    """A language model that needs so many bytes, and whose heads are unknown."""
    values: dict[str, Any] = {
        "weight_bytes": 0,
        "claim_override": claim,
        "categories": ("llm",),
        "parameters": parameters,
    }
    return BaselineRequest(**{**values, **changes})


def host(name: str, *memory: int, type: str = "cuda", **changes: Any) -> HostSnapshot:
    """A host with accelerators of so many bytes and a lot of RAM."""
    values: dict[str, Any] = {
        "name": name,
        "ram_total": 1000 * GIB,
        "accelerators": tuple(accelerator(i, size, type) for i, size in enumerate(memory)),
    }
    return HostSnapshot.model_validate({**values, **changes})


def accelerator(index: int, memory: int, type: str = "cuda") -> Accelerator:
    return Accelerator(type=type, index=index, memory_total=memory, memory_free=memory)


def held(index: int, amount: int, release: str = "other") -> Claim:
    return Claim(
        host="h", resource=Resource.ACCELERATOR, index=index, amount=amount, release=release
    )


def held_ram(amount: int, release: str = "other") -> Claim:
    return Claim(host="h", resource=Resource.RAM, amount=amount, release=release)


def named(*hosts: str, type: str = "cuda") -> tuple[ManualAccelerator, ...]:
    """`a:0 a:1 b:0` and so on."""
    pairs = (item.split(":") for item in hosts)
    return tuple(ManualAccelerator(name, type, int(index)) for name, index in pairs)


def found(decision: Decision) -> list[list[Shown]]:
    """Each candidate as its shares: host, accelerators, bytes."""
    return [
        [(share.host, share.accelerators, share.accelerator_bytes) for share in item.shares]
        for item in decision.candidates
    ]


def seats(request: BaselineRequest, *hosts: HostSnapshot) -> list[list[tuple[str, list[int]]]]:
    """Each candidate as its shares: host, accelerators."""
    return [
        [(share.host, list(share.accelerators)) for share in item.shares]
        for item in decide(request, hosts).candidates
    ]


def alone(*names: str, accelerators: Sequence[int] = (0,)) -> list[list[tuple[str, list[int]]]]:
    """One candidate on each of these hosts."""
    return [[(name, list(accelerators))] for name in names]
