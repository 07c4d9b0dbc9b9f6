"""Fleets, wishes and models at random, and what is really in use on the hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from moorage.common.units import GIB, KIB
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import FleetSnapshot, HostSnapshot
from moorage.models.profile import ModelProfile
from moorage.placement.fit import misfits
from moorage.placement.memory import Memory
from moorage.placement.placement import Placement
from moorage.placement.request import Request
from moorage.spec import EngineName, ModelSpec
from tests.builders import a_cpu_host, a_fleet, a_profile, a_spec, an_accelerator
from tests.placement.requests import StatedSizes, a_request, on_hosts

NAMES = ("h1", "h2", "h3", "h4")
PORTS = (9000, 9007)
RAY = (9100, 9131)
SIZES = ((), (24,), (80,), (24, 24), (80, 80), (40, 40, 40), (80,) * 4, (24, 80, 24), (0, 80))
KINDS = st.sampled_from([*["cuda"] * 10, "rocm", "cann"])
PRODUCTS = {"cuda": "NVIDIA H100", "rocm": "AMD Instinct MI300X", "cann": ""}
HELD = (Resource.RAM, Resource.ACCELERATOR)


@st.composite
def hosts(draw: st.DrawFn, name: str) -> HostSnapshot:
    sizes = draw(st.sampled_from(SIZES))
    kinds = [draw(KINDS) for _ in sizes]
    free = draw(st.sampled_from([1.0, 1.0, 0.95, 0.5]))
    unified = draw(st.sampled_from([False, False, False, True]))
    ram = draw(st.sampled_from([4, 64, 256, 256])) * GIB
    ram_free = int(ram * (free if unified else 1))
    accelerators = tuple(
        an_accelerator(
            index,
            size,
            type=kind,
            name=PRODUCTS[kind],
            memory_free=min(int(size * GIB * free), ram_free if unified else size * GIB),
        )
        for index, (size, kind) in enumerate(zip(sizes, kinds, strict=True))
    )
    return a_cpu_host(
        name,
        accelerators=accelerators,
        runtimes=draw(st.sampled_from([*[("docker", "process")] * 4, ("docker",), ("process",)])),
        cpus=draw(st.sampled_from([1, 16, 16])),
        ram_total=ram,
        ram_free=ram_free,
        ram_reserve=draw(st.sampled_from([0, 4 * GIB])),
        accelerator_reserve=draw(st.sampled_from([0, 0, 2 * GIB])),
        unified_memory=unified,
        port_range=PORTS,
        ray_range=RAY,
        bind=draw(st.sampled_from([*[f"10.0.0.{name[1:]}"] * 5, "127.0.0.1"])),
        ports_in_use=draw(st.sampled_from([*[()] * 4, (9000,), (9001, 9002), (9103,)])),
        unreachable=draw(st.sampled_from([*[""] * 15, "no route"])),
        labels=draw(st.sampled_from([*[{"zone": "a"}] * 3, {}])),
        images=draw(st.sampled_from([frozenset(), frozenset({"vllm/vllm-openai:v0.32.0"})])),
    )


fleets = st.integers(1, 4).flatmap(
    lambda count: st.tuples(*(hosts(name) for name in NAMES[:count])).map(lambda h: a_fleet(*h))
)
selections = st.lists(
    st.builds(
        "{}:{}:{}".format,
        st.sampled_from(NAMES[:2]),
        st.sampled_from([*["cuda"] * 6, "rocm"]),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=3,
    unique=True,
)
arguments = st.sampled_from(
    [
        *[()] * 8,
        ("-tp 2",),
        ("--pipeline-parallel-size=3",),
        ("--data_parallel_size 2",),
        ("-tp=2", "-dp 2"),
        ("--gpu-memory-utilization 0.5",),
        ("--max-model-len 4096",),
    ]
)
specs = st.builds(
    lambda **wish: a_spec(
        engine={
            "name": wish["engine"],
            "args": wish["args"],
            "distributed": wish["distributed"],
        },
        replicas=wish["replicas"],
        port=wish["port"],
        extended_kv_cache=wish["cache"],
        placement={
            key: wish[key]
            for key in (
                "accelerators",
                "accelerator_kinds",
                "strategy",
                "policy",
                "ram",
                "cores",
                "host_labels",
                "across_hosts",
                "hosts",
            )
        },
    ),
    engine=st.sampled_from(["vllm", "vllm", "transformers"]),
    args=arguments,
    replicas=st.sampled_from([1, 1, 2, 3]),
    port=st.sampled_from([*["auto"] * 5, 9000, 9001]),
    cache=st.sampled_from([*[None] * 4, {"ram": "40GiB"}, {"ratio": 0.5}, {"ratio": 3.0}]),
    accelerators=st.one_of(st.just("auto"), st.just("auto"), st.integers(0, 5), selections),
    accelerator_kinds=st.sampled_from([*[()] * 5, ("cuda",), ("amd", "*H100*")]),
    strategy=st.sampled_from(["spread", "binpack"]),
    policy=st.sampled_from(["fitted", "fitted", "whole"]),
    ram=st.sampled_from([*["auto"] * 4, "2GiB", "40GiB"]),
    cores=st.sampled_from(["auto", "auto", 4]),
    host_labels=st.sampled_from([*[{}] * 5, {"zone": "a"}]),
    across_hosts=st.booleans(),
    hosts=st.sampled_from([*["auto"] * 6, 2, 3]),
    distributed=st.sampled_from(["auto", "native", "ray"]),
)
profiles = st.builds(
    lambda gib, heads, context: a_profile(
        weight_bytes=gib * GIB, attention_heads=heads, context=context
    ),
    st.sampled_from([1, 8, 16, 30, 70, 100, 200]),
    st.sampled_from([32, 32, 12, 25, None]),
    st.sampled_from([2048, 8192, 131_072]),
)


def _grows(weights: int, most: int) -> Memory:
    """Memory of so many GiB and 128 KiB for each token, unless they are too many."""

    def size(tokens: int, tensor: int, pipeline: int) -> int:
        return (weights * GIB + tokens * 128 * KIB) // (tensor * pipeline) if tokens < most else 0

    return StatedSizes(size, outside=GIB // 2)


memories = st.sampled_from(
    [
        None,
        _grows(15, 2**20),
        _grows(35, 2**16),
        _grows(70, 2**20),
        StatedSizes(lambda *_: 10 * GIB, GIB // 2, stated=20 * GIB),
        StatedSizes(lambda tokens, *_: 10 * GIB + tokens * 128 * KIB, 0, stated=22 * GIB),
    ]
)
"""How much the model takes; None = it is estimated from the profile."""


@st.composite
def requests(draw: st.DrawFn, /, **fixed: object) -> Request:
    """What someone asks for; where arguments and accelerators contradict, the latter give way."""
    spec, profile = draw(specs), draw(profiles)
    if any((len(entry) and "parallel" in entry) or "p" in entry[:3] for entry in spec.engine.args):
        fixed = {"accelerators": "auto", **fixed}
    if spec.engine.name != EngineName.VLLM:
        fixed = {**fixed, "hosts": "auto"}
    if fixed:
        placement = spec.placement.model_copy(update=fixed)
        spec = spec.model_copy(update={"placement": placement})
    engine = ENGINES[spec.engine.name]
    return a_request(spec, profile, engine, draw(memories))


def placement_of(request: Request, fleet: FleetSnapshot) -> Placement:
    return on_hosts(request, *fleet.hosts)


def changed(request: Request, **placement: object) -> Request:
    """The same request with other words on placement."""
    spec: ModelSpec = request.spec
    changes = spec.placement.model_copy(update=placement)
    profile: ModelProfile = request.profile
    spec = spec.model_copy(update={"placement": changes})
    return a_request(spec, profile, request.engine, request.demand.memory)


def gate(fleet: FleetSnapshot, claims: Sequence[Claim]) -> list[str]:
    """What the ledger does before it writes claims down: whatever does not fit."""
    found: list[str] = []
    for host in fleet.hosts:
        found += misfits(host, [claim for claim in claims if claim.host == host.name])
    return found


@dataclass
class World:
    """Hosts, what others use there, and what releases hold.

    Attributes:
        fleet: The hosts before any release.
        held: Claims by release.
    """

    fleet: FleetSnapshot
    held: dict[str, tuple[Claim, ...]] = field(default_factory=dict)

    def hold(self, release: str, claims: Sequence[Claim], *, pending: bool) -> None:
        """A release takes its claims; while it is pending it uses none of them yet."""
        own = (replace(claim, release=release, pending=pending) for claim in claims)
        self.held[release] = tuple(own)

    def settle(self) -> None:
        """Whatever was pending is proven, and uses what it claimed."""
        for release, claims in self.held.items():
            self.hold(release, claims, pending=False)

    def survey(self) -> FleetSnapshot:
        """The fleet as it is seen now."""
        claims = tuple(claim for held in self.held.values() for claim in held)
        return a_fleet(*(_seen(host, claims) for host in self.fleet.hosts))

    def overcommitted(self) -> list[str]:
        """Resources of which more is claimed, or used by others, than there is."""
        return [line for host in self.survey().hosts for line in _too_much(host, self.fleet)]


def _seen(host: HostSnapshot, claims: tuple[Claim, ...]) -> HostSnapshot:
    seen = host.with_claims(claims)
    used: Counter[tuple[Resource, int]] = Counter()
    for claim in seen.claims:
        if not claim.pending:
            used[claim.resource, claim.index] += claim.amount
    ram = used[Resource.RAM, 0]
    if host.unified_memory:
        ram = sum(amount for (resource, _), amount in used.items() if resource in HELD)
    ram_free = host.ram_free - ram
    accelerators = tuple(
        item.model_copy(
            update={
                "memory_free": min(
                    item.memory_free - used[Resource.ACCELERATOR, item.index],
                    ram_free if host.unified_memory else item.memory_total,
                )
            }
        )
        for item in host.accelerators
    )
    return seen.model_copy(update={"ram_free": ram_free, "accelerators": accelerators})


def _too_much(host: HostSnapshot, before: FleetSnapshot) -> list[str]:
    held: Counter[tuple[Resource, int]] = Counter()
    for claim in host.claims:
        held[claim.resource, claim.index] += claim.amount
    first = before.host(host.name)
    reserve = host.accelerator_reserve
    there = {
        (Resource.RAM, 0): min(first.ram_free, first.ram_total - first.ram_reserve),
        (Resource.CORES, 0): host.cpus,
        **{
            (Resource.ACCELERATOR, item.index): min(item.memory_free, item.memory_total - reserve)
            for item in first.accelerators
        },
    }
    found = [f"{host.name}: {key}" for key, amount in held.items() if amount > there.get(key, 1)]
    pool = sum(amount for (resource, _), amount in held.items() if resource in HELD)
    if host.unified_memory and pool > there[Resource.RAM, 0]:
        found.append(f"{host.name}: {pool} of one pool")
    return found
