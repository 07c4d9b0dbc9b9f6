"""Which quantization is taken: the largest that fits whole, and the reason for every other one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.common.failures import Cause, Failure
from moorage.common.units import GIB
from moorage.common.values import Origin
from moorage.engines.registry import ENGINES
from moorage.inventory.snapshot import HostSnapshot, Program
from moorage.memory.gguf import GgufMemory
from moorage.memory.gguf_header import GgufHeader
from moorage.models.quantizations import FilesChoice, Quantization
from moorage.placement.demand import Subject
from moorage.placement.file_choice import (
    MOST_TRIED,
    FileTrial,
    Fit,
    NoQuantizationFits,
    Offer,
    choose,
    in_whole,
    offer_of,
)
from moorage.placement.placement import Placement, Seat
from moorage.placement.propose import NoFit, propose
from moorage.spec import EngineName, ModelSpec, RuntimeName
from moorage.spec.arguments import parse_words
from tests.builders import a_fleet, a_host, a_profile, a_spec, an_accelerator

LAYERS = 40
SIZES = {
    "block_count": LAYERS,
    "embedding_length": 4096,
    "feed_forward_length": 14336,
    "attention.head_count": 32,
    "attention.head_count_kv": 8,
}
LLAMA = Program(engine=EngineName.LLAMA_CPP, path="/opt/llama-server", version="11549")
FILES = {"Q8_0": 42, "Q6_K": 32, "Q4_K_M": 21, "Q2_K": 12, "F16": 84}


def quantization(label: str, gib: int) -> Quantization:
    name = f"tiny-{label}.gguf"
    return Quantization(name=name, pattern=name, bytes=gib * GIB)


FOUND = tuple(quantization(label, gib) for label, gib in FILES.items())


def gpu(name: str = "gpu-1", gib: int = 24, ram: int = 64, gpus: int = 1) -> HostSnapshot:
    cards = tuple(an_accelerator(index, gib) for index in range(gpus))
    return a_host(name, accelerators=cards, ram_total=ram * GIB, ram_free=ram * GIB)


def cpu(name: str = "cpu-1", ram: int = 64) -> HostSnapshot:
    changes = {"ram_total": ram * GIB, "ram_free": ram * GIB, "programs": (LLAMA,)}
    return a_host(name, gpus=0, **changes)


def placing(
    spec: ModelSpec, hosts: tuple[HostSnapshot, ...], tried: list[FileTrial]
) -> Callable[[FileTrial], Placement | NoFit]:
    """Place a quantization as a deploy does, with a header that says what its file weighs."""

    def proposal(trial: FileTrial) -> Placement | NoFit:
        tried.append(trial)
        wanted = in_whole(spec) if trial.whole else spec
        weights = trial.quantization.bytes
        layer = weights // (LAYERS + 2)
        parts = {f"blk.{number}": layer for number in range(LAYERS)}
        header = GgufHeader(SIZES, weights, {"token_embd": layer, "output": layer, **parts})
        claim, place = wanted.memory.claim, wanted.placement
        memory = GgufMemory(
            header,
            parse_words(()),
            claim=None if claim is None else int(claim),
            divisible=place.partial_offload,
        )
        profile = a_profile(format="gguf", layers=LAYERS, context=8192, weight_bytes=weights)
        try:
            return propose(Subject(wanted, profile, memory), a_fleet(*hosts), ENGINES)
        except NoFit as failure:
            return failure

    return proposal


def chosen(*hosts: HostSnapshot, **fields: Any) -> tuple[FilesChoice, list[str]]:
    """The choice, and which quantizations were read for it."""
    spec, tried = a_spec(files="auto", concurrency=1, **fields), list[FileTrial]()
    choice = choose(offer_of(FOUND, spec, a_fleet(*hosts)), placing(spec, hosts, tried))
    return choice, list(dict.fromkeys(one.quantization.name[5:-5] for one in tried))


@pytest.mark.parametrize(
    ("hosts", "fields", "label", "reason", "read"),
    [
        ((gpu(gib=80),), {}, "Q8_0", "the largest that fits whole on accelerators", "Q8_0"),
        ((gpu(gib=24),), {}, "Q4_K_M", "whole on accelerators", "Q8_0 Q6_K Q4_K_M"),
        ((gpu(gib=24, gpus=2),), {}, "Q8_0", "whole on accelerators", "Q8_0"),
        ((gpu(gib=24, ram=16),), {}, "Q4_K_M", "whole on accelerators", "Q4_K_M"),
        ((cpu(ram=40),), {}, "Q6_K", "the largest that fits whole in RAM", "Q6_K"),
        ((gpu(), cpu(ram=256)), {}, "Q4_K_M", "on accelerators", "Q8_0 Q6_K Q4_K_M"),
        ((gpu(gib=8), cpu(ram=40)), {}, "Q6_K", "in RAM", "Q8_0 Q6_K Q4_K_M Q2_K"),
        (
            (gpu(gib=8),),
            {"placement": {"partial_offload": True}},
            "Q2_K",
            "the smallest, which fits with layers in RAM",
            "Q8_0 Q6_K Q4_K_M Q2_K",
        ),
        (
            (gpu(gib=24),),
            {"placement": {"partial_offload": True}},
            "Q4_K_M",
            "whole on accelerators",
            "Q8_0 Q6_K Q4_K_M",
        ),
        ((gpu(gib=80),), {"memory": {"claim": "16GiB"}}, "Q2_K", "", "Q8_0 Q6_K Q4_K_M Q2_K"),
        ((cpu(ram=256),), {"placement": {"ram": "24GiB"}}, "Q4_K_M", "", "Q8_0 Q6_K Q4_K_M"),
    ],
)
def test_the_largest_that_fits_whole_is_taken_and_nothing_smaller_is_read(
    hosts: tuple[HostSnapshot, ...], fields: dict[str, Any], label: str, reason: str, read: str
) -> None:
    choice, seen = chosen(*hosts, **fields)
    assert choice.pattern == f"tiny-{label}.gguf"
    assert reason in choice.reason
    assert seen == read.split()


def test_every_refused_quantization_has_its_reason_with_numbers() -> None:
    choice, _ = chosen(gpu(gib=24, ram=36))
    reasons = {one.name[5:-5]: one.refusal for one in choice.verdicts}
    assert reasons == {
        "Q8_0": "no host has more than 36.0 GiB for its weights",
        "Q6_K": reasons["Q6_K"],
        "Q4_K_M": "",
        "Q2_K": "smaller than the chosen one",
        "F16": "not quantized (16 bits a weight): taken by its name only",
    }
    assert reasons["Q6_K"].startswith("gpu-1: accelerator-memory: 3")
    assert "24.0 GiB available" in reasons["Q6_K"]


def test_where_none_fits_the_failure_has_each_with_its_reason_and_what_would_help() -> None:
    with pytest.raises(NoQuantizationFits) as caught:
        chosen(gpu(gib=8))
    failure = caught.value
    for label in FILES:
        assert f"tiny-{label}.gguf (" in failure.detail
    assert "partial_offload" in failure.suggestion
    assert failure.content["files"].pattern == ""
    assert failure.content["placement"].verdicts


def test_a_stated_limit_that_holds_none_is_named() -> None:
    with pytest.raises(NoQuantizationFits, match=r"4\.0 GiB available on each") as caught:
        chosen(gpu(gib=80), memory={"claim": "4GiB"})
    assert "memory.claim states no more" in caught.value.detail
    assert "memory.claim" in caught.value.suggestion
    assert not caught.value.placement.fits


def test_a_file_that_cannot_be_read_is_refused_and_the_next_is_tried() -> None:
    spec, hosts = a_spec(files="auto", concurrency=1), (gpu(gib=80),)
    place = placing(spec, hosts, [])

    def only(*readable: str) -> FilesChoice:
        def proposal(trial: FileTrial) -> Placement | NoFit:
            if trial.quantization.name[5:-5] not in readable:
                raise Failure(Cause.SOURCE_CORRUPT, "no GGUF file")
            return place(trial)

        return choose(offer_of(FOUND, spec, a_fleet(*hosts)), proposal)

    choice = only("Q6_K")
    assert choice.pattern == "tiny-Q6_K.gguf"
    assert choice.verdicts[0].refusal == "no GGUF file"
    with pytest.raises(Failure) as caught:
        only()
    assert caught.value.cause is Cause.SOURCE_CORRUPT


def test_what_is_not_quantized_is_taken_where_nothing_else_is() -> None:
    found = (quantization("BF16", 16), quantization("F32", 32))
    spec, hosts = a_spec(files="auto"), (gpu(gib=80),)
    choice = choose(offer_of(found, spec, a_fleet(*hosts)), placing(spec, hosts, []))
    assert choice.pattern == "tiny-BF16.gguf"


def test_many_quantizations_are_not_all_read() -> None:
    found = tuple(quantization(f"Q{size}_0", size) for size in range(60, 10, -1))
    spec, tried = a_spec(files="auto", concurrency=1), list[FileTrial]()
    hosts = (gpu(gib=24),)
    choice = choose(offer_of(found, spec, a_fleet(*hosts)), placing(spec, hosts, tried))
    assert len(tried) == MOST_TRIED + 1
    assert choice.pattern == found[-1].pattern
    assert f"not tried: only {MOST_TRIED} are" in choice.verdicts[MOST_TRIED].refusal


fits = st.sampled_from([Fit.ACCELERATORS, Fit.RAM, Fit.NOWHERE, Fit.NOWHERE])


@given(whole=st.lists(fits, min_size=2, max_size=MOST_TRIED), last=fits, only_ram=st.booleans())
def test_the_largest_that_has_a_place_is_chosen_and_never_one_that_was_refused(
    whole: list[Fit], last: Fit, only_ram: bool
) -> None:
    if only_ram:
        whole = [Fit.RAM if fit == Fit.ACCELERATORS else fit for fit in whole]
    found = tuple(quantization(f"Q{number}_0", 100 - number) for number in range(len(whole)))
    by_trial = {_trial(one): fit for one, fit in zip(found, whole, strict=True)}
    by_trial[_trial(found[-1], whole=False)] = last
    choice = choice_or_failure(
        Offer(found, only_ram=only_ram), lambda trial: proposed(by_trial[trial])
    )
    expected = [
        one.pattern
        for wanted in (Fit.ACCELERATORS, Fit.RAM)
        for one in found
        if by_trial[_trial(one)] == wanted
    ]
    expected += [found[-1].pattern] if last != Fit.NOWHERE else []
    assert choice.pattern == next(iter(expected), "")
    assert [one.name for one in choice.verdicts if not one.refusal] == expected[:1]


@settings(max_examples=12)
@given(size=st.integers(1, 100), card=st.integers(1, 60), ram=st.integers(1, 60))
def test_what_is_refused_by_its_size_alone_has_no_place(size: int, card: int, ram: int) -> None:
    hosts, spec = (gpu(gib=card, ram=ram), cpu(ram=ram)), a_spec(files="auto", concurrency=1)
    one = quantization("Q4_0", size)
    if not offer_of([one], spec, a_fleet(*hosts)).may_fit(one):
        assert isinstance(placing(spec, hosts, [])(_trial(one)), NoFit)


def proposed(fit: Fit) -> Placement | NoFit:
    """A placement with a seat of this kind, or none."""
    accelerators = {"accelerators": (0,), "accelerator_bytes": (1,)}
    seat = Seat(
        host="gpu-1",
        runtime=RuntimeName.PROCESS,
        port=40000,
        replica=0,
        reason="",
        **(accelerators if fit == Fit.ACCELERATORS else {}),
    )
    placement = Placement(
        engine=EngineName.LLAMA_CPP,
        engine_origin=Origin.DERIVED,
        engine_reason="",
        seats=() if fit == Fit.NOWHERE else (seat,),
        verdicts=(),
    )
    return NoFit(Cause.NO_FIT, placement) if fit == Fit.NOWHERE else placement


def choice_or_failure(offer: Offer, place: Callable[[FileTrial], Placement | NoFit]) -> FilesChoice:
    try:
        return choose(offer, place)
    except NoQuantizationFits as failure:
        return failure.choice


def _trial(one: Quantization, *, whole: bool = True) -> FileTrial:
    return FileTrial(quantization=one, whole=whole)
