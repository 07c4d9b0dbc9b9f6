"""What holds for every fleet and every wish, however they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.models.profile import ModelProfile
from moorage.placement.claims import Claim, Resource
from moorage.placement.fit import misfits
from moorage.placement.placement import Placement
from moorage.placement.snapshot import FleetSnapshot, HostSnapshot
from moorage.spec import EngineName, ModelSpec
from moorage.units import GIB
from tests.builders import a_cpu_host, a_fleet, a_host, a_profile, a_spec, an_accelerator, placed

NAMES = ("h1", "h2", "h3")
PORTS = (9000, 9003)


@st.composite
def hosts(draw: st.DrawFn, name: str) -> HostSnapshot:
    sizes = draw(st.lists(st.sampled_from([24, 40, 80]), max_size=4))
    kinds = [draw(st.sampled_from(["cuda", "cuda", "cuda", "rocm", "cann"])) for _ in sizes]
    free = draw(st.sampled_from([1.0, 1.0, 0.95, 0.5]))
    accelerators = tuple(
        an_accelerator(index, size, type=kind, memory_free=int(size * GIB * free))
        for index, (size, kind) in enumerate(zip(sizes, kinds, strict=True))
    )
    return a_cpu_host(
        name,
        accelerators=accelerators,
        runtimes=draw(st.sampled_from([("docker", "process"), ("docker",), ("process",)])),
        ram_total=(ram := draw(st.sampled_from([4, 64, 256])) * GIB),
        ram_free=ram,
        ram_reserve=draw(st.sampled_from([0, 4 * GIB])),
        port_range=PORTS,
        ports_in_use=draw(st.sampled_from([(), (9000,), (9001, 9002)])),
        unreachable=draw(st.sampled_from([*[""] * 7, "no route"])),
        labels=draw(st.sampled_from([{"zone": "a"}, {}])),
    )


fleets = st.integers(1, 3).flatmap(
    lambda count: st.tuples(*(hosts(name) for name in NAMES[:count])).map(lambda h: a_fleet(*h))
)
selections = st.lists(
    st.builds(
        "{}:{}:{}".format,
        st.sampled_from(NAMES),
        st.sampled_from(["cuda", "cuda", "rocm"]),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=2,
    unique=True,
)
specs = st.builds(
    lambda **wish: a_spec(
        engine={"name": wish["engine"]},
        replicas=wish["replicas"],
        port=wish["port"],
        placement={key: wish[key] for key in ("accelerators", "strategy", "ram", "host_labels")},
    ),
    engine=st.sampled_from(["vllm", "transformers"]),
    replicas=st.integers(1, 3),
    port=st.sampled_from(["auto", "auto", 9000, 9001]),
    accelerators=st.one_of(st.just("auto"), st.integers(0, 3), selections),
    strategy=st.sampled_from(["spread", "binpack"]),
    ram=st.sampled_from(["auto", "2GiB", "40GiB"]),
    host_labels=st.sampled_from([{}, {}, {}, {"zone": "a"}]),
)
profiles = st.builds(
    lambda gib, heads: a_profile(weight_bytes=gib * GIB, attention_heads=heads),
    st.sampled_from([1, 8, 16, 30, 70, 200]),
    st.sampled_from([32, 12, 25, None]),
)


def placement_of(spec: ModelSpec, profile: ModelProfile, fleet: FleetSnapshot) -> Placement:
    return placed(spec, *fleet.hosts, profile=profile, engine=EngineName(spec.engine.name))


def gate(fleet: FleetSnapshot, claims: Sequence[Claim]) -> bool:
    """What the ledger does before it writes claims down."""
    return not any(misfits(h, [c for c in claims if c.host == h.name]) for h in fleet.hosts)


def holding(fleet: FleetSnapshot, claims: Sequence[Claim]) -> FleetSnapshot:
    return a_fleet(*(host.with_claims(tuple(claims)) for host in fleet.hosts))


def overcommitted(fleet: FleetSnapshot) -> list[str]:
    """Resources of which more is claimed than there is."""
    found = []
    for host in fleet.hosts:
        held: Counter[tuple[Resource, int]] = Counter()
        for claim in host.claims:
            held[claim.resource, claim.index] += claim.amount
        there = {(Resource.RAM, 0): host.ram_total - host.ram_reserve}
        there |= {
            (Resource.ACCELERATOR, item.index): item.memory_total - host.accelerator_reserve
            for item in host.accelerators
        }
        found += [
            f"{host.name}: {key}" for key, amount in held.items() if amount > there.get(key, 1)
        ]
    return found


@given(fleets, st.lists(st.tuples(specs, profiles, st.integers(0, 3)), min_size=1, max_size=6))
def test_nothing_is_held_twice_whatever_comes_and_goes(
    fleet: FleetSnapshot, arrivals: list[tuple[ModelSpec, ModelProfile, int]]
) -> None:
    held: dict[str, tuple[Claim, ...]] = {}
    for number, (spec, profile, leaving) in enumerate(arrivals):
        claims = placement_of(spec, profile, fleet).claims
        if gate(fleet, claims):
            own = (c.model_copy(update={"release": f"r{number}"}) for c in claims)
            held[f"r{number}"] = tuple(own)
        held.pop(f"r{leaving}", None)
        fleet = holding(fleet, [claim for claims in held.values() for claim in claims])
        assert overcommitted(fleet) == []


some_claims = st.lists(
    st.builds(
        Claim,
        host=st.just("gpu-1"),
        release=st.sampled_from(["", "a.v1", "b.v1"]),
        resource=st.sampled_from([Resource.ACCELERATOR, Resource.RAM]),
        index=st.just(0),
        amount=st.integers(1, 100 * GIB),
    )
    | st.builds(
        Claim,
        host=st.just("gpu-1"),
        release=st.sampled_from(["", "a.v1"]),
        resource=st.just(Resource.PORT),
        index=st.integers(9000, 9002),
        amount=st.just(1),
    ),
    max_size=4,
)


@given(st.lists(some_claims, max_size=6))
def test_the_gate_lets_nothing_through_that_does_not_fit(batches: list[list[Claim]]) -> None:
    fleet = a_fleet(a_host(gpus=1, port_range=(9000, 9002)))
    for batch in batches:
        if gate(fleet, batch):
            fleet = holding(fleet, [*fleet.hosts[0].claims, *batch])
        assert overcommitted(fleet) == []


@given(fleets, specs, profiles)
def test_a_proposal_passes_the_gate_that_it_is_made_for(
    fleet: FleetSnapshot, spec: ModelSpec, profile: ModelProfile
) -> None:
    placement = placement_of(spec, profile, fleet)
    assert len(placement.seats) in (0, spec.replicas)
    assert gate(fleet, placement.claims)


@given(fleets, specs, profiles)
def test_the_same_input_gives_the_same_answer(
    fleet: FleetSnapshot, spec: ModelSpec, profile: ModelProfile
) -> None:
    again = FleetSnapshot.model_validate_json(fleet.model_dump_json())
    assert placement_of(spec, profile, fleet) == placement_of(spec, profile, again)


@given(fleets, specs, profiles)
def test_every_host_has_a_verdict_and_every_refusal_a_reason(
    fleet: FleetSnapshot, spec: ModelSpec, profile: ModelProfile
) -> None:
    placement = placement_of(spec, profile, fleet)
    assert [verdict.host for verdict in placement.verdicts] == [host.name for host in fleet.hosts]
    assert all(verdict.detail for verdict in placement.verdicts)
    assert placement.fits or all(verdict.refusal for verdict in placement.verdicts)


@given(fleets, specs, profiles, st.booleans())
def test_one_more_free_host_never_makes_a_model_homeless(
    fleet: FleetSnapshot, spec: ModelSpec, profile: ModelProfile, first: bool
) -> None:
    more = a_host("new", port_range=PORTS)
    grown = a_fleet(more, *fleet.hosts) if first else a_fleet(*fleet.hosts, more)
    assert placement_of(spec, profile, grown).fits >= placement_of(spec, profile, fleet).fits


@settings(max_examples=200)
@given(fleets, specs, selections, profiles)
def test_a_manual_selection_is_obeyed_or_refused(
    fleet: FleetSnapshot, spec: ModelSpec, selection: list[str], profile: ModelProfile
) -> None:
    chosen = spec.placement.model_copy(update={"accelerators": tuple(selection)})
    wish = spec.model_copy(update={"placement": chosen, "replicas": 1})
    for seat in placement_of(wish, profile, fleet).seats:
        taken = [f"{seat.host}:{seat.accelerator_type}:{index}" for index in seat.accelerators]
        assert sorted(taken) == sorted(selection)
