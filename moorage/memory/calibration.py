"""Calibration: measurements of earlier starts correct later predictions.

Weights and KV cache are exact; activation and CUDA graphs are estimates until an engine with the
same settings has logged their real sizes.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from moorage.common.strict_json import JsonError, decode
from moorage.common.units import GIB
from moorage.common.values import Value
from moorage.models.profile import ModelProfile
from moorage.readiness.engine_facts import Measured
from moorage.spec.arguments import MULTIPLES, WRITTEN, full_name, parse_words

TENSOR = ("--tensor-parallel-size", "-tp", "--tp")
PIPELINE = ("--pipeline-parallel-size", "-pp", "--pp")
BATCHED = ("--max-num-batched-tokens",)
SEQUENCES = ("--max-num-seqs",)
EAGER = "--enforce-eager"
DRAFTS = ("--speculative-config", "-sc")

OTHERS = (
    *("--attention-", "--compilation-config", "--cudagraph", "--data-parallel-size"),
    *("--decode-context", "--dtype", "--enable-expert-parallel", "--enable-lora"),
    *("--fully-sharded-loras", "--kv-cache-dtype", "--language-model-only", "--limit-mm"),
    *("--lora-target", "--max-cudagraph", "--max-lora", "--mm-", "--optimization-level"),
    *("--quantization", "--skip-mm", "--spec", "-O", "-cc", "-dcp", "-dp", "-ep", "-q", "-sc"),
    "--dp",
)
"""Prefixes of other options that affect the memory outside the KV cache."""


class CalibrationKey(Value):
    """The properties that two starts must share for a measurement of one to hold for the other.

    Attributes:
        architecture: vLLM's class, such as `LlamaForCausalLM`.
        shape: Further properties of the model: sizes, dtype, quantisation, mode.
        accelerator_type: `cuda`, ...; `cpu` without accelerators.
        accelerator: Name of the device; empty on CPU.
        max_num_batched_tokens: Tokens of one scheduler step; 0 = the engine's default.
        max_num_seqs: Requests that run at once; 0 = the engine's default.
        options: Other options that affect the memory, such as LoRA's.
    """

    architecture: str
    shape: str
    engine: str
    engine_version: str
    accelerator_type: str
    accelerator: str = ""
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    max_num_batched_tokens: int = 0
    max_num_seqs: int = 0
    eager: bool = False
    options: str = ""


def calibration_key(
    profile: ModelProfile,
    engine: str,
    version: str,
    accelerator_type: str,
    accelerator: str,
    arguments: Sequence[str],
) -> CalibrationKey:
    """The key of a start; defaults omitted from the command line follow from the other fields."""
    options = _options(arguments)
    return CalibrationKey(
        architecture=profile.architectures[0] if profile.architectures else profile.model_type,
        shape=_shape(profile),
        engine=engine,
        engine_version=version,
        accelerator_type=accelerator_type,
        accelerator=accelerator,
        tensor_parallel_size=_number(options, TENSOR) or 1,
        pipeline_parallel_size=_number(options, PIPELINE) or 1,
        max_num_batched_tokens=_number(options, BATCHED),
        max_num_seqs=_number(options, SEQUENCES),
        eager=EAGER in options,
        options=_others(options),
    )


def key_of_command(key: CalibrationKey, command: Sequence[str]) -> CalibrationKey:
    """The key of a start, given its whole command line and the `key` of its settings.

    The settings of a user's own command, such as a script, are unknown, so its words replace them.
    """
    own = {} if command[1:2] == ("serve",) else {"options": " ".join(command)}
    return key.model_copy(update=own)


def _options(arguments: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Options with the words that follow them; the last of a repeated option counts."""
    options = parse_words(arguments).options
    return {full_name(one.written.replace("_", "-")): one.values for one in options}


def _shape(profile: ModelProfile) -> str:
    """Sizes, stored element type and mode; models that differ in these share no measurement."""
    sizes = (profile.layers, profile.hidden_size, profile.attention_heads, profile.vocab_size)
    stored = profile.quantization or profile.dtype or "unknown"
    return f"{'x'.join(str(size or 0) for size in sizes)} {stored} {profile.mode}"


def _number(options: Mapping[str, tuple[str, ...]], names: tuple[str, ...]) -> int:
    """The value of a numeric option; 0 if it is not given or not a number."""
    text = next((value for name in names for value in options.get(name, ())), "")
    digits, factor = (text[:-1], MULTIPLES[text[-1]]) if text[-1:] in MULTIPLES else (text, 1)
    return int(digits) * factor if digits.isdecimal() else 0


def _others(options: Mapping[str, tuple[str, ...]]) -> str:
    names = sorted(name for name in options if name.startswith(OTHERS))
    return " ".join(word for name in names for word in (name, *_placeless(name, options[name])))


def _placeless(name: str, words: Sequence[str]) -> Sequence[str]:
    """The words without the draft model's path, which differs between a container and its host."""
    if name not in DRAFTS:
        return words
    try:
        content = decode(" ".join(words), WRITTEN)
    except JsonError:
        content = None
    if not isinstance(content, dict):
        return words
    return (json.dumps({key: content[key] for key in sorted(content) if key != "model"}),)


ROUNDING = GIB // 100
"""Bytes by which a logged size, and so a difference, may be off: logs show two decimals of GiB."""


class Measurement(Value):
    """Measured and predicted memory of one workload of a release.

    Attributes:
        predicted: Bytes of one rank by the name of the term; empty = no prediction.
        measured_at: Time of the measurement, UTC.
    """

    workload: str
    key: CalibrationKey
    measured: Measured
    predicted: dict[str, int] = {}
    release: str
    measured_at: datetime


LOADED = ("weights", "buffers")
"""Terms that loading the model allocates."""

STAYING: tuple[str, ...] = (*LOADED, "redundancy")
"""Terms that stay allocated next to the cache; the redundancy covers memory outside torch."""


def charged_graphs(measured: Measured) -> int | None:
    """Bytes that graphs cost the budget: vLLM keeps its reserve even if capturing took less."""
    sizes = (measured.graph_bytes, measured.graph_reserve_bytes)
    return max((size for size in sizes if size is not None), default=None)


def corrected(terms: Mapping[str, int], measured: Measured) -> dict[str, int]:
    """The terms of a prediction, in bytes of one rank, corrected by a measurement.

    Activation and graphs become the measured values. Weights are exact, so memory that stays
    allocated beyond them, except the cache and the graphs, is only added.
    """
    sizes = {"activation": measured.activation_bytes, "cuda_graphs": charged_graphs(measured)}
    known = {name: size for name, size in sizes.items() if size is not None and name in terms}
    found = {**terms, **known}
    staying, names = measured.consumed_bytes, STAYING
    if staying is None:
        staying, names = measured.weights_bytes, LOADED
    if staying is not None and "weights" in terms:
        more = staying - sum(terms.get(name, 0) for name in names)
        found["weights"] += more if more > ROUNDING else 0
    return found
