"""A placement case as a deploy sees it: spec, profile, fleet snapshot.

What a spec says in another way is translated here, each with its reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any

from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import Accelerator, FleetSnapshot, HostSnapshot
from moorage.models.profile import ModelProfile
from moorage.placement.demand import Subject
from moorage.placement.engine_checks import OWNED_ARGUMENTS
from moorage.placement.links import is_peer_address
from moorage.spec import Mode, ModelSpec, RuntimeName
from moorage.spec.arguments import parse_words
from moorage.spec.patterns import NAME_PATTERN, VERSION_PATTERN
from moorage.spec.tokenize import is_option, user_tokens

Case = Mapping[str, Any]

NAME = "model"
IMAGE = "conformance/engine:any"
"""The cases say nothing of images, and one that the user names suits every host."""

CONTEXT = 8192
"""The rules do not look at it."""

MODES = {"image": Mode.IMAGE_GENERATION, "embedding": Mode.EMBEDDING, "reranker": Mode.RERANKING}
SHARED_RATIO = 1.2
"""RAM of an extended cache where a case leaves the ratio out."""


def a_subject(case: Case) -> Subject:
    """The model, and what its spec says."""
    model = case["model"]
    spec = ModelSpec.model_validate(_spec(case))
    return Subject(spec, _profile(model), adapter_bytes=model.get("lora_bytes") or 0)


def a_fleet(case: Case) -> tuple[FleetSnapshot, str]:
    """The hosts with their claims, and a release that serves the model itself, if one does."""
    names, claims, own = host_names(case), dict[str, list[Claim]](), ""
    for number, entry in enumerate(case.get("running") or ()):
        release = f"{NAME if entry.get('same_model') else f'other-{number}'}.v{number + 1}"
        own = own or (release if entry.get("same_model") else "")
        host = names[entry["worker"]]
        claims.setdefault(host, []).extend(_claims(entry, host, release))
    hosts = (_host(item, names, claims, at) for at, item in enumerate(case["fleet"]))
    return FleetSnapshot(hosts=tuple(hosts)), own


def host_names(case: Case) -> dict[str, str]:
    """Hosts by the name of the worker; one that no fleet file takes gets a number."""
    workers = [item["name"] for item in case["fleet"]]
    return {
        name: name if re.fullmatch(NAME_PATTERN, name) else f"host-{at}"
        for at, name in enumerate(workers)
    }


def _spec(case: Case) -> dict[str, Any]:
    model, request = case["model"], case["request"]
    return {
        "name": NAME,
        "source": "hf://conformance/model",
        "engine": {
            "name": "vllm",
            "image": IMAGE,
            "version": _version(request.get("backend_version")),
            "args": _arguments(request.get("backend_parameters") or ()),
        },
        "placement": _placement(case),
        "memory": {"claim": model.get("vram_claim_override_bytes")},
        "extended_kv_cache": _cache(request.get("extended_kv_cache")),
        "replicas": max(1, request.get("replicas") or 1),
        # The replicas that run stay, as they do for the peer.
        "replace": {"strategy": "surge"},
    }


def _placement(case: Case) -> dict[str, Any]:
    """The peer always overcommits accelerators that were listed; a spec has to allow it."""
    request, names = case["request"], host_names(case)
    allowed = request.get("distributed_allowed")
    listed = [
        f"{names.get(item['worker'], item['worker'])}:{item['type']}:{item['index']}"
        for item in request.get("manual_gpus") or ()
    ]
    found: dict[str, Any] = {
        "policy": "baseline",
        "strategy": request.get("strategy") or "spread",
        "across_hosts": True if allowed is None else allowed,
    }
    if listed:
        each = request.get("gpus_per_replica") or None
        found |= {"accelerators": listed, "accelerators_per_replica": each, "overcommit": True}
    return found


def _version(text: str | None) -> str | None:
    """A version without its `v`; of one that is no number the rules see only its ending."""
    if not text:
        return None
    plain = text.removeprefix("v")
    if re.fullmatch(VERSION_PATTERN, plain):
        return plain
    return "9999-custom" if "-custom" in text else None


def _arguments(entries: Sequence[str | None]) -> list[str]:
    """Without what a spec says in a field of its own; it decides nothing about the place."""
    written = [entry for entry in entries if entry]
    words = user_tokens(written)
    if not any(parse_words(words).has(flag) for flag in OWNED_ARGUMENTS):
        return written
    kept: list[str] = []
    owned = False
    for word in words:
        if is_option(word):
            name = word.partition("=")[0].replace("_", "-")
            owned = name in OWNED_ARGUMENTS
        kept += [] if owned else [word]
    return kept


def _cache(entry: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """One without a size and without a ratio takes no RAM: for a place it is as none."""
    if not entry or not entry.get("enabled"):
        return None
    size, ratio = entry.get("ram_size_gib") or 0, entry.get("ram_ratio", SHARED_RATIO) or 0
    found = {"ram": int(size * GIB)} if size > 0 else {}
    found |= {"ratio": ratio} if ratio > 0 else {}
    return found or None


def _profile(model: Mapping[str, Any]) -> ModelProfile:
    categories = tuple(model.get("categories") or ())
    modes = [MODES[name] for name in categories if name in MODES]
    return ModelProfile(
        architectures=tuple(model.get("architectures") or ()),
        model_type="",
        mode=modes[0] if modes else Mode.COMPLETION,
        mode_origin=Origin.DERIVED,
        context=CONTEXT,
        context_origin=Origin.DERIVED,
        context_reason="",
        layers=None,
        attention_heads=model.get("attention_heads"),
        kv_heads=None,
        vision_heads=model.get("vision_heads"),
        head_dim=None,
        hidden_size=None,
        vocab_size=model.get("vocab_size"),
        dtype="",
        quantization="",
        weight_bytes=model.get("weight_bytes") or 0,
        has_chat_template=False,
        categories=categories,
    )


def _host(
    item: Mapping[str, Any], names: Mapping[str, str], claims: Mapping[str, list[Claim]], at: int
) -> HostSnapshot:
    """What runs uses what it claimed, and nobody else uses anything."""
    ram, own = item.get("ram") or {}, tuple(claims.get(names[item["name"]], ()))
    used: Counter[tuple[Resource, int]] = Counter()
    for claim in own:
        used[claim.resource, claim.index] += claim.amount
    total = ram.get("total") or 0
    return HostSnapshot(
        name=names[item["name"]],
        address="local",
        bind=_address(item.get("address"), at),
        labels=item.get("labels") or {},
        runtimes=(RuntimeName.DOCKER,),
        ram_total=total,
        ram_free=max(0, total - used[Resource.RAM, 0]),
        ram_reserve=ram.get("reserved") or 0,
        accelerator_reserve=item.get("vram_reserved_per_gpu") or 0,
        accelerators=tuple(
            Accelerator(
                type=gpu["type"],
                index=gpu["index"],
                name=gpu.get("name") or "",
                memory_total=gpu["memory_total"],
                memory_free=max(0, gpu["memory_total"] - used[Resource.ACCELERATOR, gpu["index"]]),
                family=gpu.get("arch_family") or "",
            )
            for gpu in item.get("gpus") or ()
        ),
        claims=own,
    )


def _address(text: str | None, at: int) -> str:
    """Hosts reach each other, whatever a case calls their addresses."""
    try:
        if text and is_peer_address(str(ip_address(text))):
            return text
    except ValueError:
        pass
    return f"10.255.{at // 250}.{at % 250 + 1}"


def _claims(entry: Mapping[str, Any], host: str, release: str) -> Iterator[Claim]:
    """A port too, so that what holds neither accelerators nor RAM is still seen to run."""
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
