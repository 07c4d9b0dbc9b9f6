from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from moorage.common.units import GIB, KIB
from moorage.common.values import Origin
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import Accelerator, FleetSnapshot, HostSnapshot
from moorage.memory.demand import MemoryModel
from moorage.memory.stated_options import memory_options
from moorage.placement.demand import Subject
from moorage.placement.placement import Placement
from moorage.placement.propose import NoFit, propose, seats_for
from moorage.placement.remedies import Trial, remedies
from moorage.placement.request import Request, request_for
from moorage.placement.view import view_of
from moorage.spec import EngineName
from tests.builders import a_claim, a_cpu_host, a_fleet, a_host, a_profile, a_spec, an_accelerator
from tests.memory.models import known
from tests.placement.requests import StatedSizes, a_request, on_hosts, views
from tests.placement.worlds import fleets, requests


def model(gib: int, context: int = 131_072, **spec: Any) -> Request:
    """A model of so many GiB, and 128 KiB for each token."""
    memory = StatedSizes(
        lambda tokens, t, p: (gib * GIB + tokens * 128 * KIB) // (t * p), outside=GIB
    )
    return _asking(a_request(a_spec(**spec), a_profile(context=context), memory=memory), {})


def host(name: str, *free: int, total: int = 80, **changes: Any) -> HostSnapshot:
    items = (an_accelerator(at, total, memory_free=gib * GIB) for at, gib in enumerate(free))
    return a_host(name, accelerators=tuple(items), **changes)


def with_driver(version: str, of: HostSnapshot) -> HostSnapshot:
    items = (one.model_copy(update={"runtime_version": version}) for one in of.accelerators)
    return of.model_copy(update={"accelerators": tuple(items)})


def held(gib: int, release: str, name: str = "a", index: int = 0) -> Any:
    return a_claim(Resource.ACCELERATOR, gib * GIB, index, release=release, host=name)


def _asking(request: Request, changes: dict[str, Any]) -> Request:
    """The request after the user has changed the spec; a stated context is the model's then."""
    spec = type(request.spec).model_validate(request.spec.model_dump() | changes)
    stated = spec.context != "auto"
    profile = request.profile.model_copy(
        update={"context": spec.context, "context_origin": Origin.USER} if stated else {}
    )
    return a_request(spec, profile, request.engine, request.demand.memory)


def applied(way: str, request: Request, fleet: FleetSnapshot) -> Placement:
    """What comes of doing as the remedy says."""
    changes = _changes(way, request)
    if changes:
        return on_hosts(_asking(request, changes), *fleet.hosts)
    if match := re.match(r"Retire (\S+): ", way):
        return on_hosts(request, *fleet.without(match[1]).hosts)
    if match := re.match(r"(\S+) would do with nothing else on it", way):
        return on_hosts(request, *(_empty(h) if h.name == match[1] else h for h in fleet.hosts))
    if match := re.match(r"A host with (\d+) x (.+) \(([\d.]+) GiB\) would do", way):
        number, name, gib = int(match[1]), match[2], float(match[3])
        return on_hosts(request, *fleet.hosts, _made_of(number, gib, name, request, fleet))
    match = re.match(r"(\d+) x ([\d.]+) GiB \((\w+)\) on one host would do", way)
    assert match, way
    number, gib, type_ = int(match[1]), float(match[2]), match[3]
    return on_hosts(request, *fleet.hosts, _of_size(number, gib, type_, fleet))


def _changes(way: str, request: Request) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if match := re.search(r"`context: (\d+)`", way):
        changes["context"] = int(match[1])
    if match := re.search(r"`concurrency: (\d+)`", way):
        changes["concurrency"] = int(match[1])
    if match := re.search(r"`placement\.accelerators: (\d+)`", way):
        changes["placement"] = request.spec.placement.model_dump() | {"accelerators": int(match[1])}
    if "`placement.across_hosts: true`" in way:
        changes["placement"] = request.spec.placement.model_dump() | {"across_hosts": True}
    if match := re.search(r"`extended_kv_cache\.(\w+): (\S+)`", way):
        changes["extended_kv_cache"] = {match[1]: match[2]}
    if "Leave out `extended_kv_cache`" in way:
        changes["extended_kv_cache"] = None
    if "`engine.distributed: ray`" in way:
        changes["engine"] = request.spec.engine.model_dump() | {"distributed": "ray"}
    if "parallel sizes out" in way:
        args = tuple(one for one in request.spec.engine.args if "p" not in one.partition(" ")[0])
        changes["engine"] = request.spec.engine.model_dump() | {"args": args}
    if match := re.search(r"`(--[^`]+)` (?:in|to) `engine\.args`", way):
        args = (*request.spec.engine.args, match[1])
        changes["engine"] = request.spec.engine.model_dump() | {"args": args}
    return changes


def _empty(host: HostSnapshot) -> HostSnapshot:
    items = (i.model_copy(update={"memory_free": i.memory_total}) for i in host.accelerators)
    free = {"claims": (), "ports_in_use": (), "ram_free": host.ram_total}
    return host.model_copy(update={**free, "accelerators": tuple(items)})


def _made_of(
    count: int, gib: float, name: str, request: Request, fleet: FleetSnapshot
) -> HostSnapshot:
    """A new host like the one with most accelerators of a kind, with so many of them."""

    def alike(host: HostSnapshot) -> list[Accelerator]:
        return [
            item
            for item in host.accelerators
            if item.type in request.engine.accelerator_types
            and (item.name, item.memory_total) == (name, int(gib * GIB))
        ]

    like = max(fleet.hosts, key=lambda one: len(alike(one)))
    return _extended(like, alike(like)[0], count)


def _of_size(count: int, gib: float, type_: str, fleet: FleetSnapshot) -> HostSnapshot:
    """A new host like the one with most of one type, with accelerators of another size."""

    def memory(host: HostSnapshot) -> int:
        groups = view_of(host).groups.items()
        return max((k.total * len(room) for k, room in groups if k.type == type_), default=0)

    like = max(fleet.hosts, key=memory)
    total = int(gib * GIB)
    item = an_accelerator(type=type_, name="", memory_total=total, memory_free=total)
    return _extended(like, item, count)


def _extended(like: HostSnapshot, item: Accelerator, count: int) -> HostSnapshot:
    items = tuple(item.model_copy(update={"index": index}) for index in range(count))
    return _empty(like.model_copy(update={"name": "new", "accelerators": items}))


def on(accelerators: Any) -> dict[str, Any]:
    return {"accelerators": accelerators}


PAIR = (host("a", 80, 80, bind="10.0.0.1"), host("b", 80, 80, bind="10.0.0.2"))
"""Two hosts that can be joined."""


def remedies_of(request: Request, fleet: FleetSnapshot) -> tuple[str, ...]:
    return remedies(Trial(request, fleet, views(*fleet.hosts), seats_for))


@pytest.mark.parametrize(
    ("request_", "hosts", "way"),
    [
        (model(70, 8192), [host("a", 73)], "Set `concurrency: 1`: "),
        (model(70), [host("a", 72)], "Set `context: 4096` and `concurrency: 1`: "),
        (_asking(model(60), {"context": 131_072}), [host("a", 73)], "Set `context: 65536`: "),
        (
            model(60, engine={"args": ["--max-model-len 131072"]}),
            [host("a", 73)],
            "Set `--max-model-len 65536` in `engine.args`: ",
        ),
        (model(100, placement=on(1)), [host("a", 80, 80)], "Set `placement.accelerators: 2`: "),
        (
            model(100, placement=on(["a:cuda:0"])),
            [host("a", 80, 80)],
            "Set `placement.accelerators: 2`: ",
        ),
        (
            model(10, engine={"args": ["-tp 3"]}),
            [host("a", 80, 80, 80)],
            "Leave the parallel sizes",
        ),
        (model(100, engine={"args": ["-dp=2"]}), [host("a", 80, 80)], "Leave the parallel sizes"),
        (
            model(180, placement={"across_hosts": True}),
            [host("a", 80, 80, bind="10.0.0.1"), host("b", 80, bind="10.0.0.2")],
            "Set `engine.distributed: ray`: ",
        ),
        (model(180), [*PAIR], "Set `placement.across_hosts: true`: "),
        (model(180, placement=on(4)), [*PAIR], "Set `placement.across_hosts: true`: "),
        (
            model(100, placement=on(["a:cuda:0", "b:cuda:0"])),
            [*PAIR],
            "Set `placement.across_hosts: true`: ",
        ),
        (
            model(70, extended_kv_cache={"ram": "400GiB"}),
            [host("a", 80)],
            "Set `extended_kv_cache.ram: 100GiB`: ",
        ),
        (
            model(70, extended_kv_cache={"ratio": 3}),
            [host("a", 80)],
            "Set `extended_kv_cache.ratio: 1.5`: ",
        ),
        (
            model(70, extended_kv_cache={"ram": "400GiB"}),
            [host("a", 80, ram_free=20 * GIB)],
            "Leave out `extended_kv_cache`: ",
        ),
        (model(70), [host("a", 20, claims=(held(60, "old.v1"),))], "Retire old.v1: "),
        (
            model(70),
            [host("a", 0, claims=(held(40, "one.v1"), held(40, "two.v1")))],
            "a would do with nothing else on it: ",
        ),
        (model(70), [host("a", 20)], "a would do with nothing else on it: "),
        (model(100), [host("a", 80)], "A host with 2 x NVIDIA H100 80GB HBM3 (80.0 GiB) would do"),
        (model(100), [host("a", 80)], "1 x 141.0 GiB (cuda) on one host would do: "),
        (model(70, replicas=2), [host("a", 80)], "A host with 2 x NVIDIA H100 80GB"),
    ],
)
def test_a_way_out_is_named_and_it_is_one(
    request_: Request, hosts: list[HostSnapshot], way: str
) -> None:
    fleet = a_fleet(*hosts)
    assert not on_hosts(request_, *hosts).fits
    named = remedies_of(request_, fleet)
    (found,) = (one for one in named if one.startswith(way))
    assert applied(found, request_, fleet).fits


def are_true(ways: Sequence[str], request: Request, fleet: FleetSnapshot) -> bool:
    """Whether the model fits after each of them; an estimated checkpoint cannot be tried."""
    real = [way for way in ways if not way.startswith("A checkpoint of it")]
    return all(applied(way, request, fleet).fits for way in real)


@given(fleets, requests())
def test_every_way_that_is_named_lets_all_replicas_fit(
    fleet: FleetSnapshot, request: Request
) -> None:
    if not on_hosts(request, *fleet.hosts).fits:
        assert are_true(remedies_of(request, fleet), request, fleet)


@pytest.mark.parametrize(
    ("request_", "hosts"),
    [
        (model(70), []),
        (model(70, placement=on(0)), [a_cpu_host(ram_free=GIB)]),
        (model(70), [a_cpu_host()]),
        (model(70, placement={"host_labels": {"zone": "a"}}), [host("a", 80)]),
        (model(70), [host("a", 80, unreachable="no route")]),
        (model(70), [a_host(accelerators=(an_accelerator(type="cann"),), runtimes=())]),
        (model(100, placement=on(["a:cuda:0"])), [host("a", 80)]),
        (model(100), [with_driver("11.0", host("a", 80, 80))]),
    ],
    ids=[
        *("no hosts", "on CPU", "no accelerators", "labels", "unreachable", "kind", "by hand"),
        "driver",
    ],
)
def test_no_way_is_named_where_none_is_known(request_: Request, hosts: list[HostSnapshot]) -> None:
    fleet = FleetSnapshot(hosts=tuple(hosts))
    guesses = ("on one host would do", "as far as can be estimated")
    ways = [way for way in remedies_of(request_, fleet) if not any(g in way for g in guesses)]
    assert ways == []


def test_a_replica_that_finds_its_place_is_no_way_out_for_the_others() -> None:
    request, fleet = model(70, replicas=2), a_fleet(host("a", 80))
    assert not any(way.startswith("Set") for way in remedies_of(request, fleet))


def test_the_policy_baseline_names_the_host_to_empty_for_accelerators_of_several_hosts() -> None:
    listed = {"accelerators": ["a:cuda:0", "b:cuda:0"], "across_hosts": True, "policy": "baseline"}
    full = host("a", 80, 80, claims=(held(60, "old.v1"),), bind="10.0.0.1")
    fleet = a_fleet(full, host("b", 80, bind="10.0.0.2"))
    named = remedies_of(a_request(a_spec(engine={"name": "vllm"}, placement=listed)), fleet)
    assert any(way.startswith("a would do with nothing else on it: ") for way in named)


QWEN = "qwen3-8b"


def qwen(*args: str, gib: int = 22) -> tuple[Subject, FleetSnapshot]:
    config, headers = known(QWEN)
    spec = a_spec(engine={"name": "vllm", "args": list(args)}, context=40_960, placement=on(1))
    profile = a_profile(
        context=40_960, context_origin=Origin.USER, weight_bytes=16 * GIB, kv_heads=8, layers=36
    )
    memory = MemoryModel(config, headers, memory_options(spec))
    return Subject(spec, profile, memory), a_fleet(host("a", gib, total=gib))


def test_arguments_that_save_memory_are_tried_with_the_exact_model() -> None:
    subject, fleet = qwen()
    with pytest.raises(NoFit) as caught:
        propose(subject, fleet, ENGINES)
    (argument,) = (
        match[1]
        for way in caught.value.placement.remedies
        if (match := re.match(r"Add `(.+)` to `engine\.args`", way))
    )
    placement = propose(qwen(*argument.split(" --", maxsplit=0))[0], fleet, ENGINES)
    assert placement.fits


def test_arguments_of_vllm_are_no_way_out_for_another_engine() -> None:
    subject, fleet = qwen()
    spec = subject.spec.model_copy(update={"engine": a_spec().engine})
    request = request_for(replace(subject, spec=spec), ENGINES[EngineName.TRANSFORMERS])
    assert not any(way.startswith("Add") for way in remedies_of(request, fleet))
