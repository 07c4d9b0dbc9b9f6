"""Fleets and models for benchmarks of placement.

Every host is a separate object with separate tuples and slightly different free memory, so that
no comparison is fast only because it meets the same object.
"""

from __future__ import annotations

from ipaddress import ip_address

from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Claim, Resource
from moorage.inventory.snapshot import Accelerator, FleetSnapshot, HostSnapshot
from moorage.placement.demand import Subject
from moorage.placement.request import Request, request_for
from moorage.spec import EngineName, ModelSpec, RuntimeName
from tests.builders import a_profile, an_accelerator

ACCELERATORS = 8
MIB = 1 << 20
HELD = 16 * GIB
"""Bytes of one accelerator that a running release claims and uses."""

WEIGHTS = {
    "one accelerator": 8,
    "TP8": 64,
    "several hosts": 640,
    "four hosts": 1_500,
    "nowhere": 640,
    "nowhere, across": 200_000,
}
"""GiB of weights by case. 640 do not fit one host of 8 x 80 GiB, but two; 1,500 need four;
200,000 do not fit even 64 hosts."""

FIRST_ADDRESS = ip_address("10.0.0.1")

ACROSS = ("several hosts", "four hosts", "nowhere, across")
"""Cases in which one replica may span hosts."""


def a_fleet(hosts: int, releases: int) -> FleetSnapshot:
    """`hosts` hosts with 8 accelerators and `releases` running releases each."""
    return FleetSnapshot(hosts=tuple(_host(number, releases) for number in range(hosts)))


def a_request(case: str, strategy: str) -> Request:
    """One replica of a model for a case of `WEIGHTS`, spread or bin-packed."""
    placement: dict[str, object] = {"strategy": strategy}
    if case == "TP8":
        placement["accelerators"] = ACCELERATORS
    if case in ACROSS:
        placement["across_hosts"] = True
    spec = ModelSpec.model_validate(
        {"name": "bench", "source": "hf://org/bench", "placement": placement}
    )
    profile = a_profile(
        context=32768,
        layers=64,
        attention_heads=64,
        hidden_size=8192,
        vocab_size=151936,
        weight_bytes=WEIGHTS[case] * GIB,
    )
    return request_for(Subject(spec, profile), ENGINES[EngineName.VLLM])


def _host(number: int, releases: int) -> HostSnapshot:
    name = f"host-{number:05}"
    held = [HELD if index < releases else 0 for index in range(ACCELERATORS)]
    claims = []
    for index in range(releases):
        release = f"model-{(number + index) % 97}.v1"
        memory, port = (Resource.ACCELERATOR, index, HELD), (Resource.PORT, 40000 + index, 1)
        for resource, at, amount in (memory, port):
            claims.append(
                Claim(host=name, resource=resource, index=at, amount=amount, release=release)
            )
    return HostSnapshot(
        name=name,
        address=f"ssh://{name}",
        bind=str(FIRST_ADDRESS + number),
        runtimes=(RuntimeName.DOCKER,),
        cpus=128,
        ram_total=2048 * GIB,
        ram_free=(2000 - number % 13) * GIB,
        accelerators=tuple(_accelerator(number, index, held[index]) for index in range(len(held))),
        ports_in_use=tuple(40000 + index for index in range(releases)),
        claims=tuple(claims),
    )


def _accelerator(number: int, index: int, held: int) -> Accelerator:
    others = (500 + (7 * number + 13 * index) % 97) * MIB
    return an_accelerator(index, uuid=f"GPU-{number}-{index}", memory_free=80 * GIB - held - others)
