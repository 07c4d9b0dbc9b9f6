"""Small fleets and requests, with round numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import Accelerator, HostSnapshot
from moorage.placement.baseline.place import rank
from moorage.placement.demand import Subject
from moorage.placement.placement import Ranking
from moorage.placement.request import Request, request_for
from moorage.spec import EngineName
from tests.builders import a_profile, a_spec

OF_MODEL = {
    *("weight_bytes", "categories", "architectures"),
    *("attention_heads", "vision_heads", "vocab_size"),
}
OF_PLACE = {"accelerators", "accelerators_per_replica", "across_hosts", "strategy", "overcommit"}

Shown = tuple[str, tuple[int, ...], tuple[int, ...]]


def a_request(claim: int = 0, *args: str, **changes: Any) -> Request:
    """A language model that needs so many bytes, and whose heads are unknown.

    Args:
        claim: Bytes of the replica; 0 = by the rules' estimate.
        args: `engine.args`.
        changes: Fields of the profile and of `placement`, and `adapter_bytes`, `version` and
            `args`; others are fields of the spec.
    """
    values: dict[str, Any] = {
        **{"weight_bytes": 0, "categories": ("llm",), "attention_heads": None, "vocab_size": None},
        **{"across_hosts": True, "args": args, "version": None, "adapter_bytes": 0},
        **changes,
    }
    profile = {key: values.pop(key) for key in OF_MODEL & values.keys()}
    place = {key: values.pop(key) for key in OF_PLACE & values.keys()}
    adapter_bytes = values.pop("adapter_bytes")
    spec = a_spec(
        engine={"name": "vllm", "args": values.pop("args"), "version": values.pop("version")},
        memory={"claim": claim or None},
        placement={"policy": "baseline", **place},
        **values,
    )
    subject = Subject(spec, a_profile(**profile), adapter_bytes=adapter_bytes)
    return request_for(subject, ENGINES[EngineName.VLLM])


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


def a_claim(index: int, amount: int, release: str = "other", **changes: Any) -> Claim:
    return Claim(
        host="h",
        resource=Resource.ACCELERATOR,
        index=index,
        amount=amount,
        release=release,
        **changes,
    )


def a_ram_claim(amount: int, release: str = "other") -> Claim:
    return Claim(host="h", resource=Resource.RAM, amount=amount, release=release)


def named(*hosts: str, type: str = "cuda") -> tuple[str, ...]:
    """`a:0 a:1 b:0` and so on."""
    pairs = (item.split(":") for item in hosts)
    return tuple(f"{name}:{type}:{index}" for name, index in pairs)


def shares_of(ranking: Ranking) -> list[list[Shown]]:
    """Each candidate as its shares: host, accelerators, bytes."""
    return [
        [(share.host, share.accelerators, share.accelerator_bytes) for share in item.shares]
        for item in ranking.candidates
    ]


def best(ranking: Ranking) -> int:
    """The candidate with the best score, the first of equals."""
    return ranking.scores.index(max(ranking.scores))


def seats(request: Request, *hosts: HostSnapshot) -> list[list[tuple[str, list[int]]]]:
    """Each candidate as its shares: host, accelerators."""
    return [
        [(share.host, list(share.accelerators)) for share in item.shares]
        for item in rank(request, hosts).candidates
    ]


def alone(*names: str, accelerators: Sequence[int] = (0,)) -> list[list[tuple[str, list[int]]]]:
    """One candidate on each of these hosts."""
    return [[(name, list(accelerators))] for name in names]
