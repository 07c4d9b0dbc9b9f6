"""What holds for the claim of any model, under any version of vLLM."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.common.units import GIB, MIB
from moorage.memory.demand import MemoryModel
from moorage.memory.need import MemoryQuery, Need
from moorage.memory.options import MemoryOptions
from moorage.models.source import TensorHeaders, WeightSummary
from moorage.spec import MemorySpec

DENSE = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
EXPERTS = ("Qwen3MoeForCausalLM", "MixtralForCausalLM", "Qwen2MoeForCausalLM")
MODEL_TYPES = {
    **{name: name.removesuffix("ForCausalLM").lower() for name in DENSE},
    **dict(zip(EXPERTS, ("qwen3_moe", "mixtral", "qwen2_moe"), strict=True)),
}
VERSIONS = ("", "0.17.1", "0.19.0", *(f"0.{minor}.0" for minor in range(20, 34)), "nightly")


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from((*DENSE, *EXPERTS)))
    heads = draw(st.sampled_from((8, 16, 32, 64)))
    experts: dict[str, Any] = {}
    if name in EXPERTS:
        experts = {
            "num_experts": 8,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512,
        }
    return {
        "architectures": [name],
        "model_type": MODEL_TYPES[name],
        "num_hidden_layers": draw(st.integers(2, 96)),
        "hidden_size": heads * draw(st.sampled_from((64, 128))),
        "num_attention_heads": heads,
        "num_key_value_heads": draw(st.sampled_from((1, 4, 8))),
        "intermediate_size": draw(st.integers(512, 32_768)),
        "vocab_size": draw(st.integers(1000, 260_000)),
        "max_position_embeddings": 65_536,
        "torch_dtype": "bfloat16",
        **experts,
    }


@st.composite
def options(draw: st.DrawFn) -> MemoryOptions:
    graphs = draw(st.none() | st.integers(0, 4096).map(lambda size: size * MIB))
    return MemoryOptions(
        enforce_eager=draw(st.booleans()),
        graph_sizes=draw(st.none() | st.integers(1, 80)),
        max_seqs=draw(st.none() | st.integers(1, 2048)),
        second_runner=draw(st.sampled_from((None, None, False, True))),
        unsettled_runner=draw(st.booleans()),
        profiles_graphs=draw(st.none() | st.booleans()),
        stated=MemorySpec.model_validate({} if graphs is None else {"cuda_graphs": graphs}),
    )


queries = st.builds(
    MemoryQuery,
    total=st.integers(8 * GIB, 300 * GIB),
    tokens=st.integers(64, 65_536),
    device_type=st.sampled_from(("cuda", "rocm", "xpu")),
    versions=st.lists(st.sampled_from(VERSIONS), min_size=1, max_size=3, unique=True).map(tuple),
    tensor=st.sampled_from((1, 2, 4)),
    pipeline=st.sampled_from((1, 2)),
    concurrency=st.integers(1, 64),
)


def needed(config: dict[str, Any], chosen: MemoryOptions, query: MemoryQuery) -> Need:
    files = WeightSummary(family="bin", bytes=3 * GIB)
    found = MemoryModel(config, TensorHeaders(), chosen, files=files).need(query)
    assert isinstance(found, Need), found
    return found


@settings(max_examples=70, deadline=None)
@given(config=configs(), chosen=options(), query=queries)
def test_a_claim_holds_all_of_its_terms_and_the_share_those_inside(
    config: dict[str, Any], chosen: MemoryOptions, query: MemoryQuery
) -> None:
    need = needed(config, chosen, query)
    share = ceil(query.total * need.utilization(query.total))
    assert share >= sum(term.bytes for term in need.terms if term.inside)
    outside = sum(term.bytes for term in need.terms if not term.inside)
    assert need.claim(query.total) == share + outside
    assert len({term.name for term in need.terms}) == len(need.terms)


@settings(max_examples=70, deadline=None)
@given(config=configs(), chosen=options(), query=queries)
def test_the_claim_for_several_versions_is_enough_for_each(
    config: dict[str, Any], chosen: MemoryOptions, query: MemoryQuery
) -> None:
    """Neither the share is smaller, which starts the engine, nor what is outside of it."""
    need = needed(config, chosen, query)
    for version in query.versions:
        one = needed(config, chosen, replace(query, versions=(version,)))
        assert need.inside >= one.inside
        assert need.outside >= one.outside


@settings(max_examples=50, deadline=None)
@given(config=configs(), chosen=options(), query=queries, stated=st.integers(1, 300))
def test_what_fits_in_a_stated_claim_is_no_more_than_it(
    config: dict[str, Any], chosen: MemoryOptions, query: MemoryQuery, stated: int
) -> None:
    claim = MemorySpec.model_validate({**chosen.stated.model_dump(), "claim": stated * GIB})
    need = needed(config, chosen.model_copy(update={"stated": claim}), query)
    assert need.claim(query.total) == stated * GIB
    needs = sum(term.bytes for term in need.terms)
    assert not need.fits(query.total, query.total) or needs <= stated * GIB
