"""Where CUDA graphs count: within the share that vLLM takes of an accelerator, or on top of it.

vLLM captures graphs after it allocates the KV cache. Versions that measure graphs before that set
their bytes aside within the share. Other versions give those bytes to the cache, and the graphs
come on top of the share.

Source, read in 0.10.2, 0.12 and each minor version from 0.16 to 0.33:
`v1/worker/gpu_worker.py:determine_available_memory`, `profile_cudagraph_memory` of both model
runners, `envs.py`, and `config/vllm.py:use_v2_model_runner`.
"""

from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple

from moorage.common.versions import at_least
from moorage.memory.dtypes import quantisation_method
from moorage.memory.engine_setup import EngineSetup
from moorage.memory.facts import Facts
from moorage.memory.layers import Mixer, layer_mixers
from moorage.memory.need import MemoryQuery


class Place(StrEnum):
    """Where graphs count; `EITHER` = unknown."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    EITHER = "either"


class Runner(StrEnum):
    """vLLM's model runners: `v1/worker/gpu_model_runner.py`, and `v1/worker/gpu/`, its "V2"."""

    FIRST = "first"
    SECOND = "second"


SET_ASIDE_SINCE = {
    ("cuda", Runner.FIRST): "0.20.0",  # 0.18 and 0.19 measure graphs but set nothing aside
    ("cuda", Runner.SECOND): "0.29.0",  # in older versions `profile_cudagraph_memory` returns 0
    ("rocm", Runner.FIRST): "0.26.0",
    ("rocm", Runner.SECOND): "0.29.0",
}
"""First version that sets memory aside for graphs, by accelerator type and runner."""


class DefaultRunner(NamedTuple):
    """Models that a range of versions serves with its second runner.

    Attributes:
        since: First version of the range, which ends before that of the next newer row.
        architectures: Architectures that use the second runner.
        dense: Whether all generating models without experts and recurrent state use it too.
        quantised: Whether these architectures use it with quantised weights as well.
    """

    since: str
    architectures: frozenset[str]
    dense: bool = False
    quantised: bool = True


_EXPERTS = frozenset({"DeepseekV2ForCausalLM", "GraniteMoeForCausalLM", "Qwen2MoeForCausalLM"})
_DENSE = frozenset({"LlamaForCausalLM", "MistralForCausalLM", "Qwen3ForCausalLM"})
_LATER = frozenset(
    {
        "InklingForCausalLM",
        "InklingForConditionalGeneration",
        "KimiK3ForConditionalGeneration",
        "LongcatFlashNgramForCausalLM",
    }
)

SECOND_BY_DEFAULT = (
    DefaultRunner("0.28.0", _EXPERTS | _LATER | {"DeepseekV4ForCausalLM"}, dense=True),
    DefaultRunner("0.27.0", _EXPERTS | _LATER, dense=True),
    DefaultRunner("0.25.0", _EXPERTS, dense=True),
    DefaultRunner("0.24.0", _EXPERTS | _DENSE),
    DefaultRunner("0.23.0", _DENSE, quantised=False),
    DefaultRunner("0.22.0", frozenset({"Qwen3ForCausalLM"}), quantised=False),
)
"""Rows, newest first; older versions serve all models with the first runner.

Since 0.29 both runners set memory aside, so the choice does not matter.
"""


def graph_place(setup: EngineSetup) -> tuple[Place, str]:
    """Where graphs count, over all versions that may run, and why."""
    if setup.options.kv_bytes is not None:
        return Place.INSIDE, "the size of the KV cache is given"
    versions = setup.query.versions
    if not versions:
        return Place.INSIDE, ""
    places = {_place(setup, version) for version in versions}
    place = places.pop() if len(places) == 1 else Place.EITHER
    return place, _reason(place, versions)


def may_be_outside(query: MemoryQuery) -> bool:
    """Whether graphs may come on top of the share, for any model."""
    places = {place for one in query.versions for place in _places(query, one).values()}
    return not places <= {Place.INSIDE}


def _place(setup: EngineSetup, version: str) -> Place:
    profiles, places = setup.options.profiles_graphs, _places(setup.query, version)
    if profiles is False:
        return Place.OUTSIDE
    place = places[Runner.FIRST]
    if len(set(places.values())) > 1:
        runner = _runner(setup, version)
        place = places[runner] if runner else Place.EITHER
    # 0.18 and 0.19 use their estimate if the user turns it on.
    return Place.EITHER if profiles and place is Place.OUTSIDE else place


def _places(query: MemoryQuery, version: str) -> dict[Runner, Place]:
    found = dict.fromkeys(Runner, Place.EITHER)
    for runner in Runner:
        since = SET_ASIDE_SINCE.get((query.device_type, runner))
        if version and since:
            found[runner] = Place.INSIDE if at_least(version, since) else Place.OUTSIDE
    return found


def _runner(setup: EngineSetup, version: str) -> Runner | None:
    """The runner that a version uses; None = it depends on facts unknown here."""
    second = setup.options.second_runner
    if second is not None:
        return Runner.SECOND if second else Runner.FIRST
    row = next((row for row in SECOND_BY_DEFAULT if at_least(version, row.since)), None)
    if row is None or setup.pools:
        return Runner.FIRST
    if setup.options.draft or setup.options.unsettled_runner:
        return None
    return Runner.SECOND if _is_served_by(row, setup.facts) else Runner.FIRST


def _is_served_by(row: DefaultRunner, facts: Facts) -> bool:
    if facts.architecture in row.architectures:
        return row.quantised or not quantisation_method(facts)
    mixers = {mixer for layer in layer_mixers(facts) for mixer in layer}
    return row.dense and not facts.experts and Mixer.STATE not in mixers


def _reason(place: Place, versions: Collection[str]) -> str:
    known = all(versions)
    name = "vLLM " + " or ".join(versions) if known else "a vLLM of unknown version"
    return {
        Place.INSIDE: f"{name} sets them aside within its share",
        Place.OUTSIDE: f"on top of the share: {name} sets nothing aside for them",
        Place.EITHER: f"on top of the share: {name} may set nothing aside for them",
    }[place]
