"""Layers that stay in RAM where a GGUF model does not fit on accelerators whole."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.common.refusal import Reason
from moorage.common.units import GIB
from moorage.engines.registry import ENGINES
from moorage.inventory.claims import Resource
from moorage.inventory.snapshot import HostSnapshot
from moorage.placement.demand import Subject
from moorage.placement.placement import Seat
from moorage.placement.propose import NoFit, propose
from tests.builders import a_claim, a_fleet, a_host, a_profile, a_spec, an_accelerator
from tests.placement.requests import a_gguf_memory

LAYERS = 40
MEMORY = a_gguf_memory(LAYERS)
ALLOWED = {"partial_offload": True}


def gpu(name: str = "gpu-1", gpus: int = 1, gib: int = 24, **changes: Any) -> HostSnapshot:
    cards = tuple(an_accelerator(index, gib) for index in range(gpus))
    ram = {"ram_total": 128 * GIB, "ram_free": 128 * GIB}
    return a_host(name, accelerators=cards, **{**ram, **changes})


def seat(*hosts: HostSnapshot, running: str = "", **wish: Any) -> tuple[Seat, str]:
    """The only seat, and why the running release has to stop before."""
    spec = a_spec(**{"placement": ALLOWED, "concurrency": 1, **wish})
    profile = a_profile(format="gguf", layers=LAYERS, context=32768)
    placement = propose(Subject(spec, profile, MEMORY), a_fleet(*hosts), ENGINES, running)
    (found,) = placement.seats
    return found, placement.stop_first


def test_as_many_layers_as_fit_are_on_the_accelerator_and_the_others_in_ram() -> None:
    found, _ = seat(gpu())
    assert 15 < found.layers < 24
    assert found.ram_bytes > (LAYERS - found.layers) * GIB
    assert found.tokens == 8192  # each further token would displace layers
    claim = MEMORY.with_layers(found.layers).ram_of_layers(8192, 1)
    assert f"{found.layers} of {LAYERS} layers, as many as fit" in found.reason
    assert found.ram_bytes - claim < GIB
    assert found.need
    assert found.need.fits(24 * GIB, 24 * GIB)
    more = seat(gpu(gib=32))[0]
    assert more.layers > found.layers
    assert more.ram_bytes < found.ram_bytes


@pytest.mark.parametrize(
    ("hosts", "wish", "place"),
    [
        ((gpu(gpus=2),), {}, ("gpu-1", 2)),
        ((gpu(), gpu("gpu-2", gpus=2)), {}, ("gpu-2", 2)),
        ((gpu(), gpu("cpu-1", gpus=0)), {}, ("cpu-1", 0)),
    ],
)
def test_a_model_that_fits_whole_is_not_divided(
    hosts: tuple[HostSnapshot, ...], wish: dict[str, Any], place: tuple[str, int]
) -> None:
    found, _ = seat(*hosts, **wish)
    assert (found.host, len(found.accelerators), found.layers) == (*place, 0)


def test_a_stated_number_of_accelerators_shares_the_layers() -> None:
    one, _ = seat(gpu(), placement={**ALLOWED, "accelerators": 1})
    two, _ = seat(gpu(gpus=2, gib=20), placement={**ALLOWED, "accelerators": 2})
    assert one.layers < two.layers < LAYERS


def test_hosts_without_the_ram_for_the_others_are_passed_over() -> None:
    poor = gpu("gpu-1", gib=32, ram_total=8 * GIB, ram_free=8 * GIB)
    found, _ = seat(poor, gpu("gpu-2"))
    assert found.host == "gpu-2"


def test_the_running_release_stops_before_layers_leave_the_accelerator() -> None:
    held = a_claim(Resource.ACCELERATOR, 40 * GIB, release="tiny.v1", host="gpu-1")
    card = an_accelerator(gib=80, memory_free=40 * GIB)
    host = gpu(claims=(held,)).model_copy(update={"accelerators": (card,)})
    found, why = seat(host, running="tiny.v1")
    assert (found.layers, bool(why)) == (0, True)
    found, why = seat(host, running="tiny.v1", replace={"strategy": "surge"})
    assert (found.layers > 0, why) == (True, "")


def test_without_leave_it_fits_nowhere_and_the_leave_is_suggested() -> None:
    with pytest.raises(NoFit) as caught:
        seat(gpu(), placement={})
    (advice,) = [one for one in caught.value.placement.remedies if "partial_offload" in one]
    found, _ = seat(gpu())
    assert advice == (
        f"Set `placement.partial_offload: true`: {found.layers} of {LAYERS} layers fit, the others"
        " stay in RAM."
    )


def test_a_claim_that_the_spec_states_is_what_the_layers_have_to_fit_in() -> None:
    claim = 9 * GIB
    memory = a_gguf_memory(LAYERS, claim=claim, divisible=True)
    spec = a_spec(placement=ALLOWED, concurrency=1, context=8192)
    subject = Subject(spec, a_profile(format="gguf", layers=LAYERS, context=8192), memory)
    (found,) = propose(subject, a_fleet(gpu(gib=80)), ENGINES).seats
    assert 2 < found.layers < 7
    assert found.need
    assert found.need.inside + found.need.outside <= claim
    (claimed,) = found.accelerator_bytes
    assert claimed == claim


def test_the_ram_that_goes_with_accelerators_is_part_of_the_choice() -> None:
    subject = Subject(a_spec(context=8192, concurrency=1), a_profile(format="gguf"), MEMORY)
    full, roomy = gpu("full", gib=80, ram_free=GIB // 8), gpu("roomy", gib=80)
    (found,) = propose(subject, a_fleet(full, roomy), ENGINES).seats
    assert found.host == "roomy"
    with pytest.raises(NoFit) as refused:
        propose(subject, a_fleet(full), ENGINES)
    (verdict,) = refused.value.placement.verdicts
    assert verdict.refusal is Reason.RAM
