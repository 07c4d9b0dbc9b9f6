"""What our rules answer to a launch case, in the schema of its `expected`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from moorage.arguments import in_one_writing, is_option, switch
from moorage.engines.command import kept_flags
from moorage.engines.preparation import WITHOUT_CHECK, by_minor_version
from moorage.engines.versions import CommandLine, command_line
from moorage.engines.vllm.adapters import Adapter
from moorage.engines.vllm.arguments import derived_flags, serving_flags
from moorage.engines.vllm.ascend import is_310p
from moorage.engines.vllm.containers import SHARED_TMP, Containers, baseline_container
from moorage.engines.vllm.context import LaunchContext, Member
from moorage.engines.vllm.distributed import joins_natively
from moorage.engines.vllm.environment import variables
from moorage.engines.vllm.length import capped_length
from moorage.engines.vllm.names import SHORT_NAMES
from moorage.engines.vllm.offload import ExtendedCache
from moorage.engines.vllm.policy import BASELINE
from moorage.engines.vllm.ray import (
    DEFAULT_RANGE,
    LEADER_CONTAINER,
    SIDE_VARIABLES,
    RayPorts,
    ray_start,
)
from moorage.engines.vllm.speculative import Method, Speculative
from moorage.failures import Failure
from moorage.launch import Flag, Preparation
from moorage.models.adapter_config import largest_rank
from moorage.models.config import CONTEXT_WHEN_UNKNOWN, TEXT_CONFIG_KEYS, context_length
from moorage.units import GIB
from tests.conformance.launch_images import configured_versions
from tests.conformance.launch_words import seen_words, written_words

Json = Mapping[str, Any]
Image = Callable[[Json], tuple[str, str]]
"""Reference and engine version for a case's input; empty where nobody knows.

Raises:
    Failure: When there is no image.
"""

ENTRYPOINT = ("vllm", "serve")
UNREAD_PARTS = frozenset(TEXT_CONFIG_KEYS) - {"text_config"}
"""Parts of a configuration that GPUStack does not take for the language model."""

CLASSES = {
    "data parallel size .* is asked for, the hosts take": ("dp_mismatch",),
    "which then have to be equal": ("uneven_hosts",),
    "goes with data parallel size|local ranks are asked for": ("dp_mismatch", "uneven_hosts"),
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
        return {"error": error_classes(failure)}


def _answer(given: Json, image: Image) -> dict[str, Any]:
    reference, version = image(given)
    context, words = a_context(given, version), written_words(given)
    line = _line(given, context, version)
    flags = _flags(context, (*line.start, *words))
    derived = [token for flag in flags for token in flag.tokens]
    argv = [*line.start, *derived, *words]
    compatible = _compatible(given, reference)
    options = given.get("options") or {}
    found: dict[str, Any] = {
        "argv": argv,
        "user_argv": list(words),
        "injected": [*_options_of(line.start), *derived],
        "injected_stored": list(in_one_writing([*_options_of(line.start), *derived], True)),
        "command": [*line.entrypoint, *argv],
        "script": not _truthy(options.get("script_disabled"))
        and _preparation(options, compatible).is_needed,
        "env": _environment(given, context, compatible),
        "image": reference,
        "engine_version": version or None,
        "derived_max_model_len": _longest(given["model"]),
        "release_name_suffix": "" if context.leads else f"-f{context.position - 1}",
        "container": _container(given),
        "ray": None,
    }
    if context.spans_hosts and not joins_natively(context):
        found["ray"] = _ray(given, context, found)
        if not context.leads:
            found["command"] = found["ray"]["command"]
            found["container"] = found["container"].model_copy(
                update={"ports": tuple(found["ray"]["ports"])}
            )
    return found


def a_context(given: Json, version: str) -> LaunchContext:
    """The case as the rules see it, with the defaults of the baseline."""
    model, host, placement = given["model"], given["host"], given["placement"]
    words, kinds = seen_words(written_words(given)), set(model.get("categories") or ())
    seats = [placement["leader"], *(placement.get("followers") or ())]
    own = _own(given)
    chosen = _chosen(given)
    omni = bool(kinds & {"image", "text_to_speech"}) or bool(switch(words, "--omni"))
    audio = kinds & {"speech_to_text", "text_to_speech"}
    cache_dir = given.get("cache_dir") or ""
    return LaunchContext(
        version=version,
        name=model["name"],
        model=model["path"],
        words=words,
        given=frozenset(model.get("env") or {}),
        accelerator_type=_type(given),
        is_310p=is_310p(tuple(item.get("arch_family") or "" for item in chosen)),
        tensor=max(1, len(own.get("accelerators") or ())),
        members=tuple(
            Member(address=seat["ip"], accelerators=len(seat.get("accelerators") or ()))
            for seat in seats
        )
        if placement["role"] != "single"
        else (),
        position=_position(placement),
        address=host["ip"],
        interface=host.get("ifname") or "",
        ports=tuple(given.get("ports") or ()),
        omni=omni,
        length=None if audio else capped_length(_longest(model), BASELINE),
        claimed=sum((own.get("claimed_bytes") or {}).values()),
        speculative=_speculative(model.get("speculative")),
        cache=_cache(model.get("extended_kv_cache")),
        adapters=tuple(
            Adapter(
                name=item["name"],
                path=item["path"],
                rank=largest_rank(item.get("adapter_config")),
            )
            for item in model.get("lora") or ()
            if item.get("name") and item.get("path")
        ),
        cache_root="" if cache_dir.startswith("/read-only") else cache_dir,
        policy=BASELINE,
    )


def _preparation(options: Json, compatible: bool) -> Preparation:
    """The peer looks only at whether packages are named, not at how many."""
    asked = options.get("extra_packages")
    packages = () if asked is None else (asked,)
    return Preparation(packages=packages, without_cuda_compat=compatible)


def _line(given: Json, context: LaunchContext, detected: str) -> CommandLine:
    model, own, engine = given["model"], _own(given), given.get("engine") or {}
    versions, closed = configured_versions(engine), not engine.get("built_in", True)
    known = detected in versions.versions or not closed
    find = versions.find_or_newest if closed else versions.find
    found = find(model.get("backend_version") or (detected if known else ""))
    indexes = sorted(own.get("accelerators") or ())
    values = {
        "model_path": context.model,
        "model_name": context.name,
        "port": str(context.ports[0]) if context.ports else "",
        "host_ip": context.address,
        "accelerator_count": str(len(indexes)),
        "accelerator_ids": ",".join(map(str, indexes)),
    }
    own_way = CommandLine(ENTRYPOINT, (context.model,))
    return command_line(own_way, found[1] if found else None, values, model.get("env") or {})


def _flags(context: LaunchContext, written: Sequence[str]) -> tuple[Flag, ...]:
    derived = (*derived_flags(context), *serving_flags(context))
    return kept_flags(derived, written, SHORT_NAMES)


def _environment(given: Json, context: LaunchContext, compatible: bool) -> dict[str, str]:
    made = {item.name: item.value for item in variables(context)}
    return {**(WITHOUT_CHECK if compatible else {}), **(given["model"].get("env") or {}), **made}


def _compatible(given: Json, reference: str) -> bool:
    if not _truthy((given.get("options") or {}).get("cuda_minor_compat")):
        return False
    device: Json = next(iter(_chosen(given) or given["host"].get("accelerators") or ()), {})
    runtime = device.get("runtime_version") or ""
    return by_minor_version(reference, device.get("type") or "", runtime)


def _container(given: Json) -> Containers:
    options = given.get("options") or {}
    limits = (
        _number(options.get("uid"), int),
        _number(options.get("gid"), int),
        _number(options.get("shm_gib"), float),
    )
    devices = [(item["type"], item["index"]) for item in _chosen(given)]
    return baseline_container(given["model"]["path"], given.get("ports") or (), devices, limits)


def _ray(given: Json, context: LaunchContext, found: Json) -> dict[str, Any]:
    first, last = (
        map(int, given["ray_port_range"].split("-"))
        if given.get("ray_port_range")
        else DEFAULT_RANGE
    )
    ports, own = RayPorts(first=first, last=last), given["host"]["ip"]
    differs = {} if not context.leads else SIDE_VARIABLES
    mounts = list(found["container"].mounts)
    return {
        "container": LEADER_CONTAINER if context.leads else "default",
        "command": list(ray_start(ports, own, context.members[0].address, context.leads)),
        "ports": list(ports.exposed(context.leads)),
        "mounts": [*mounts, SHARED_TMP] if context.leads else mounts,
        "env_differs": {k: v for k, v in differs.items() if found["env"].get(k) != v},
        "same_image": True,
        "same_devices": True,
    }


def _speculative(entry: Json | None) -> Speculative | None:
    if not entry or not entry.get("enabled") or not entry.get("algorithm"):
        return None
    return Speculative(
        method=Method(entry["algorithm"]),
        tokens=entry.get("num_draft_tokens"),
        shortest=entry.get("ngram_min"),
        longest=entry.get("ngram_max"),
        model=entry.get("draft_path") or "",
    )


def _cache(entry: Json | None) -> ExtendedCache | None:
    if not entry or not entry.get("enabled"):
        return None
    size = entry.get("ram_size_gib")
    return ExtendedCache(
        ram=int(size * GIB) if size and size > 0 else None,
        ratio=entry.get("ram_ratio"),
        chunk=entry.get("chunk_size"),
    )


def _longest(model: Json) -> int | None:
    if "config" not in model or model["config"] is None:
        return model.get("derived_max_model_len")
    config = {key: part for key, part in model["config"].items() if key not in UNREAD_PARTS}
    return context_length(config, CONTEXT_WHEN_UNKNOWN)


def _own(given: Json) -> Json:
    placement = given["placement"]
    position = _position(placement)
    seat: Json = placement["followers"][position - 1] if position else placement["leader"]
    return seat


def _position(placement: Json) -> int:
    if placement["role"] != "follower":
        return 0
    return int(placement.get("follower_index") or 0) + 1


def _chosen(given: Json) -> list[Json]:
    """Its accelerators on this host, ascending; of the placement's type where that is said."""
    kind = given["placement"].get("accelerator_type")
    there = [
        item for item in given["host"].get("accelerators") or () if kind in (None, item["type"])
    ]
    chosen = (
        next((item for item in there if item["index"] == index), None)
        for index in sorted(_own(given).get("accelerators") or ())
    )
    return [item for item in chosen if item is not None]


def _type(given: Json) -> str:
    found = _chosen(given) or given["host"].get("accelerators") or ()
    return next((item["type"] for item in found), given["placement"].get("accelerator_type") or "")


def _options_of(words: Sequence[str]) -> list[str]:
    first = next((i for i, word in enumerate(words) if is_option(word)), len(words))
    return list(words[first:])


def _truthy(text: str | None) -> bool:
    return str(text or "").lower() in ("1", "true", "yes", "on", "t", "y")


def _number(text: str | None, kind: type[Any]) -> Any:
    """What is no number counts as not said, as the peer has it; our spec refuses it."""
    try:
        return kind(text) if text else None
    except ValueError:
        return None


def error_classes(failure: Failure) -> tuple[str, ...]:
    for words, names in CLASSES.items():
        if re.search(words, failure.detail):
            return names
    return (f"refused: {failure.detail}",)
