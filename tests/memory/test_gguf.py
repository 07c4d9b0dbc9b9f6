"""Prediction and log of the real server, for models of several sizes made by a script."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.adapters.sources.local import LocalSource
from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason, Refusal
from moorage.common.units import GIB, MIB
from moorage.memory.gguf import GgufMemory, Loaded, gguf_memory, prompt_cache
from moorage.memory.gguf_header import GgufHeader
from moorage.memory.need import CpuNeed, MemoryQuery, Need
from moorage.memory.sizing import most
from moorage.models.assets import Asset
from moorage.models.files import ADAPTER
from moorage.models.gguf import Metadata
from moorage.models.gguf_config import GGUF, GGUF_PARTS, LAST, NO_POOLING, RANK, gguf_config
from moorage.models.pin import AssetRole
from moorage.spec import Mode
from moorage.spec.arguments import parse_words
from tests.builders import a_model, a_profile, a_spec
from tests.e2e.conftest import tiny_adapter, tiny_model
from tests.prefect_server import free_port

SCRIPTS = Path(__file__).parents[2] / "scripts"
ROUNDING = 0.0051 * MIB
"""The log tells sizes in MiB with two digits."""

LOG = {
    "weights": r"model buffer size = *([\d.]+) MiB",
    "kv_cache": r"llama_kv_cache: size = *([\d.]+) MiB",
    "activation": r"CPU compute buffer size = *([\d.]+) MiB",
}

LISTENS = "listening on http"

WIDE = "hidden_size=256 intermediate_size=1024"
CASES = (
    # Architecture, sizes, tokens, slots, arguments.
    ("llama", "", 512, 1, ""),
    ("llama", "", 1024, 4, ""),
    ("llama", "num_hidden_layers=6", 4096, 1, ""),
    ("llama", WIDE, 2048, 1, "-ctk q8_0 -ctv q8_0"),
    ("llama", WIDE, 2048, 3, "--cache-type-k f32 --cache-type-v f32"),
    ("llama", f"{WIDE} num_key_value_heads=4", 1024, 2, "-ub 256"),
    ("llama", "intermediate_size=64 num_attention_heads=16", 1024, 1, ""),
    ("llama", f"{WIDE} num_hidden_layers=3", 8192, 1, "-ctk bf16 -ctv bf16"),
    ("qwen3", "", 1024, 1, ""),
    ("qwen3", WIDE, 300, 2, ""),
    ("qwen3", f"{WIDE} num_attention_heads=8", 4096, 1, "-ctk q4_0 -ctv q5_1"),
    ("qwen2", "hidden_size=128 intermediate_size=512", 1024, 1, ""),
    ("qwen2", "hidden_size=128 intermediate_size=512 num_hidden_layers=4", 2048, 4, "-ub 128"),
    ("llama", WIDE, 2048, 1, "--embedding --pooling mean -b 2048 -ub 2048"),
    ("gemma3", "num_hidden_layers=12 sliding_window=512", 8192, 1, ""),
    ("gemma3", f"{WIDE} num_hidden_layers=7 sliding_window=300", 4096, 3, "-ub 256"),
    ("gemma3", "num_hidden_layers=6 sliding_window=512", 4096, 2, "--swa-full"),
)


@pytest.fixture(scope="module")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models"), "llama")


@pytest.mark.process
@pytest.mark.parametrize(("arch", "sizes", "tokens", "slots", "arguments"), CASES)
def test_the_prediction_is_what_the_server_logs(
    tiny_llama: Path, tmp_path: Path, arch: str, sizes: str, tokens: int, slots: int, arguments: str
) -> None:
    path = made(tiny_llama, tmp_path / "model.gguf", arch, sizes)
    need = memory_of(path, arguments).cpu_need(tokens=tokens, concurrency=slots)
    assert isinstance(need, CpuNeed)
    cells = -(-tokens // 256) * 256 * slots
    log = logged(path, f"-c {cells} -np {slots} {arguments}")
    assert memory_of(path, arguments).layers
    for name, pattern in LOG.items():
        predicted = next(term.bytes for term in need.terms if term.name == name)
        # Layers with a window have a cache of their own.
        in_log = [float(size) * MIB for size in re.findall(pattern, log)]
        found = sum(in_log) if name == "kv_cache" else in_log[-1]
        slack = 0.1 * found if name == "activation" else ROUNDING * len(in_log)
        assert abs(predicted - found) <= slack, (name, predicted, found)


@pytest.mark.process
def test_the_tensors_of_an_adapter_are_what_the_server_logs(
    tiny_llama: Path, tmp_path: Path
) -> None:
    path = made(tiny_llama, tmp_path / "model.gguf", "llama", "")
    adapters = [tiny_adapter(tmp_path, f"rank{rank}", "--rank", rank)[1] for rank in (16, 64)]
    log = logged(path, f"--lora-scaled {','.join(f'{file}:0' for file in adapters)}")
    buffers = [float(size) * MIB for size in re.findall(r"LoRA buffer size = *([\d.]+) MiB", log)]
    for file, found in zip(adapters, buffers, strict=True):
        asset = Asset(role=AssetRole.ADAPTER, name="poet", source=f"file://{file}")
        assert abs(LocalSource(ADAPTER).resolve(asset).weights.bytes - found) <= ROUNDING


@pytest.mark.process
@pytest.mark.parametrize("arguments", ["", "-ub 256 -ctk q8_0 -ctv q8_0"])
def test_a_draft_model_takes_what_the_server_logs(
    tiny_llama: Path, tmp_path: Path, arguments: str
) -> None:
    path = made(tiny_llama, tmp_path / "model.gguf", "llama", WIDE)
    draft = made(tiny_llama, tmp_path / "draft.gguf", "llama", "num_hidden_layers=3")
    model = LocalSource().resolve(asset_of(draft))
    loaded = Loaded(draft=GgufHeader(model.config[GGUF], model.weights.bytes))
    need = memory_of(path, arguments, loaded).cpu_need(tokens=1024, concurrency=3)
    assert isinstance(need, CpuNeed)
    log = logged(
        path, f"-c 3072 -np 3 {arguments} --spec-type draft-simple --spec-draft-model {draft}"
    )
    found = sum(float(re.findall(pattern, log)[1]) for pattern in LOG.values()) * MIB
    (predicted,) = (term.bytes for term in need.terms if term.name == "draft")
    assert abs(predicted - found) <= 0.02 * found


@pytest.mark.process
def test_checkpoints_take_what_the_server_logs(tiny_llama: Path, tmp_path: Path) -> None:
    sizes = "num_hidden_layers=12 sliding_window=512"
    path = made(tiny_llama, tmp_path / "model.gguf", "gemma3", sizes)
    options = "--ctx-checkpoints 3 --checkpoint-min-step 512"
    need = memory_of(path, options).cpu_need(tokens=4096, concurrency=2)
    assert isinstance(need, CpuNeed)
    (predicted,) = (term.bytes for term in need.terms if term.name == "checkpoints")

    prompt = "sea ship wind " * 400
    log = logged(path, f"-c 8192 -np 2 {options}", prompt)
    found = re.findall(r"created context checkpoint . of 3 .*size = *([\d.]+) MiB", log)
    assert len(found) >= 2
    each = predicted / 2 / 3
    assert all(0.98 * each <= float(size) * MIB <= each + ROUNDING for size in found)


SIZES = {
    "block_count": 2,
    "embedding_length": 64,
    "feed_forward_length": 256,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
}
PARTS = {"blk.0": 5 * GIB, "blk.1": 2 * GIB, "token_embd": GIB}


QUERY = MemoryQuery(total=24 * GIB, tokens=4096)
MEAN = 1


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 64))
def test_a_longer_context_never_takes_less(one: int, other: int, slots: int) -> None:
    memory = GgufMemory(GgufHeader(SIZES, 1000), parse_words(()))
    needs = [memory.cpu_need(tokens=size, concurrency=slots) for size in sorted((one, other))]
    shorter, longer = (need.ram for need in needs if isinstance(need, CpuNeed))
    assert shorter <= longer


def test_a_header_without_sizes_gives_no_prediction() -> None:
    memory = GgufMemory(GgufHeader({"block_count": 2}, 1000), parse_words(()))
    answer = memory.cpu_need(tokens=512)
    assert isinstance(answer, Refusal)
    assert answer.reason is Reason.UNKNOWN


@pytest.mark.parametrize(("architecture", "cells"), [("nomic-bert", 0), ("llama", 512)])
def test_keys_have_as_many_heads_as_queries_where_the_header_says_no_other_number(
    architecture: str, cells: int
) -> None:
    sizes = {name: size for name, size in SIZES.items() if name != "attention.head_count_kv"}
    memory = GgufMemory(GgufHeader(sizes, 1000, architecture=architecture), parse_words(()))
    need = memory.need(MemoryQuery(total=GIB, tokens=512))
    assert isinstance(need, Need)
    # An encoder keeps no keys and values.
    cache = need.term("kv_cache")
    assert cache
    assert cache.bytes == 2 * cells * 4 * 16 * 2 * 2


def made(model: Path, out: Path, arch: str, sizes: str) -> Path:
    words = [word for pair in sizes.split() for word in ("--set", pair)]
    script = SCRIPTS / "make_tiny_gguf.py"
    subprocess.run([sys.executable, script, model, out, "--arch", arch, *words], check=True)
    return out


def memory_of(path: Path, arguments: str, loaded: Loaded | None = None) -> GgufMemory:
    model = LocalSource().resolve(asset_of(path))
    parts, words = model.config[GGUF_PARTS], parse_words(arguments.split())
    assert sum(parts.values()) == model.weights.bytes
    kind = model.config["model_type"]
    header = GgufHeader(model.config[GGUF], model.weights.bytes, parts, kind)
    return GgufMemory(header, words, loaded or Loaded())


def asset_of(path: Path) -> Asset:
    return Asset(role=AssetRole.MODEL, name="tiny", source=f"file://{path}")


def logged(path: Path, arguments: str, prompt: str = "") -> str:
    """What the server logs until it listens, and while it continues the prompt."""
    for _ in range(3):  # another program may have taken the port by then
        log = _logged_once(path, arguments, prompt)
        if LISTENS in log:
            break
    return log


def _logged_once(path: Path, arguments: str, prompt: str) -> str:
    module, port = "moorage.adapters.engines.llama_server", free_port()
    words = ["--model", path, "--port", port, "--verbosity", "4", "--no-warmup"]
    command = [sys.executable, "-m", module, *map(str, words), *arguments.split()]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    assert server.stdout
    lines = []
    with server.stdout as output:
        for line in output:
            lines.append(line)
            if LISTENS in line:
                break
        if prompt and LISTENS in lines[-1]:
            body = {"prompt": prompt, "n_predict": 1}
            httpx.post(f"http://127.0.0.1:{port}/completion", json=body, timeout=120)
        server.kill()
        lines += output
    server.wait()
    return "".join(lines)


@pytest.mark.parametrize(
    ("mode", "pooling", "arguments", "batch"),
    [
        (Mode.EMBEDDING, MEAN, "", 8192),
        (Mode.EMBEDDING, MEAN, "-ub 1024", 1024),
        (Mode.EMBEDDING, MEAN, "--pooling last", 512),
        (Mode.EMBEDDING, LAST, "", 512),
        (Mode.EMBEDDING, NO_POOLING, "", 512),
        (Mode.EMBEDDING, NO_POOLING, "--pooling mean", 8192),
        (Mode.RERANKING, RANK, "", 8192),
        (Mode.COMPLETION, NO_POOLING, "", 512),
    ],
)
def test_a_batch_holds_an_input_that_is_computed_at_once(
    mode: Mode, pooling: int, arguments: str, batch: int
) -> None:
    header: Metadata = {"general.architecture": "llama", "llama.pooling_type": pooling}
    header |= {f"llama.{name}": size for name, size in SIZES.items()}
    model = a_model({**gguf_config(header, {"F16": 1000})})
    profile = a_profile(mode=mode, architectures=tuple(model.config["architectures"]))
    memory = gguf_memory(a_spec(engine={"args": [arguments]}), model, profile)
    answers = (memory.need(replace(QUERY, tokens=8000)), memory.cpu_need(tokens=8000))
    for answer in answers:
        assert isinstance(answer, Need | CpuNeed)
        assert answer.batch.tokens == batch


def test_a_longer_context_fits_a_larger_accelerator() -> None:
    memory = GgufMemory(GgufHeader(SIZES, 8 * GIB), parse_words(()))
    query = MemoryQuery(total=0, tokens=10**8)
    sizes = (8 * GIB, 12 * GIB, 16 * GIB)
    longest = [most(memory, "tokens", replace(query, total=size), size) for size in sizes]
    assert longest[0] == 0  # the weights alone do not fit
    assert 0 < longest[1] < longest[2]
    for size, tokens in zip(sizes[1:], longest[1:], strict=True):
        fitting = memory.need(replace(query, total=size, tokens=tokens))
        assert isinstance(fitting, Need)
        assert fitting.fits(size, size)


@pytest.mark.parametrize("head", [{}, {"output": GIB // 2}])
def test_layers_that_stay_in_ram_take_their_weights_and_cache_there(head: dict[str, int]) -> None:
    whole = GgufMemory(GgufHeader(SIZES, 8 * GIB, {**PARTS, **head}), parse_words(()))
    assert whole.layers == 2
    memory = whole.with_layers(1)
    need, other = (
        one.need(MemoryQuery(total=24 * GIB, tokens=4096, concurrency=2)) for one in (memory, whole)
    )
    assert isinstance(need, Need)
    assert isinstance(other, Need)
    sizes, before = ({term.name: term.bytes for term in one.terms} for one in (need, other))
    # Without an output of its own, the last step works on a copy of the embedding.
    assert sizes["weights"] == 2 * GIB + head.get("output", GIB)
    assert sizes["kv_cache"] == before["kv_cache"] // 2
    assert sizes["activation"] == before["activation"] + 5 * GIB
    ram = 6 * GIB + before["kv_cache"] // 2 + before["activation"]
    assert memory.ram_of_layers(4096, 2) == ram


def test_a_projector_is_on_an_accelerator_with_few_layers_too() -> None:
    plain, seeing = (
        GgufMemory(GgufHeader(SIZES, weights, PARTS), parse_words(())).with_layers(1)
        for weights in (8 * GIB, 11 * GIB)
    )
    assert seeing.ram_of_layers(4096, 1) == plain.ram_of_layers(4096, 1)
    taken = []
    for memory in (plain, seeing):
        need = memory.need(QUERY)
        assert isinstance(need, Need)
        taken.append(need.inside)
    assert taken[1] - taken[0] == 3 * GIB


@pytest.mark.parametrize("parts", [{}, {"blk.1": GIB}])
def test_a_header_without_all_layers_is_not_divided(parts: dict[str, int]) -> None:
    assert GgufMemory(GgufHeader(SIZES, 8 * GIB, parts), parse_words(())).layers == 0
    unknown = GgufMemory(GgufHeader({"block_count": 2}, 8 * GIB, PARTS), parse_words(()))
    assert unknown.layers == 0


LAYER_CACHE = 2 * 16 * 2 * 2 * 4096
"""Bytes of the keys and values of one layer of `SIZES` for 4096 tokens."""


@pytest.mark.parametrize(
    ("ranks", "parts", "weights", "layers", "adapters"),
    [
        (1, {}, 12 * GIB, 8, 3 * GIB),
        # Of 8 layers and the output, which counts as one, 5 are on the first, then 3.
        (2, {}, 12 * GIB * 5 // 9, 5, 3 * GIB * 5 // 9),
        (3, {}, 4 * GIB, 3, GIB),
        # The output is larger than any layer, and the input stays in RAM.
        (2, {"output": 3 * GIB, "token_embd": GIB}, 6 * GIB, 3, 3 * GIB * 5 // 9),
        (8, {"output": GIB, "token_embd": 3 * GIB}, 2 * GIB, 2, 3 * GIB * 2 // 9),
    ],
)
def test_accelerators_share_whole_layers(
    ranks: int, parts: dict[str, int], weights: int, layers: int, adapters: int
) -> None:
    sizes = {**SIZES, "block_count": 8}
    parts |= {f"blk.{layer}": GIB for layer in range(8)} if parts else {}
    header = GgufHeader(sizes, 12 * GIB, parts)
    memory = GgufMemory(header, parse_words(()), Loaded(adapters=3 * GIB))
    need = memory.need(replace(QUERY, tensor=ranks))
    assert isinstance(need, Need)
    found = {term.name: term.bytes for term in need.terms}
    assert found["weights"] == pytest.approx(weights, abs=2)
    assert found["kv_cache"] == layers * LAYER_CACHE
    assert found["lora"] == pytest.approx(adapters, abs=2)


WINDOWED = {**SIZES, "block_count": 12, "attention.sliding_window": 512}
STATEFUL = {
    **SIZES,
    "block_count": 8,
    "ssm.inner_size": 64,
    "ssm.state_size": 16,
    "ssm.conv_kernel": 4,
    "ssm.group_count": 2,
}
WINDOW = 10 * 512 * LAYER_CACHE // 4096 + 512 * 16
"""Bytes that the ten layers with a window keep, and 16 for each of its tokens."""

STATE = 6 * (3 * (64 + 2 * 2 * 16) + 16 * 64) * 4
"""Bytes of the states of six layers: the last inputs of the convolution, and the state."""


@pytest.mark.parametrize(
    ("architecture", "sizes", "arguments", "ram"),
    [
        ("gemma3", WINDOWED, "", 3 * 2 * WINDOW),
        ("gemma3", WINDOWED, "--ctx-checkpoints 32", 3 * 32 * WINDOW),
        ("gemma3", WINDOWED, "--swa-checkpoints 0", 0),
        ("gemma3", WINDOWED, "--swa-full", 0),
        ("qwen3next", STATEFUL, "", 3 * 2 * STATE),
        ("llama", SIZES, "", 0),
        ("gemma3", {"block_count": 12}, "", 0),
    ],
)
def test_layers_that_forget_keep_checkpoints_in_ram(
    architecture: str, sizes: dict[str, int], arguments: str, ram: int
) -> None:
    header = GgufHeader(sizes, 8 * GIB, architecture=architecture)
    memory = GgufMemory(header, parse_words(tuple(arguments.split())))
    assert memory.ram_of_checkpoints(4096, 3) == ram


@pytest.mark.parametrize(
    ("arguments", "size"),
    [("", 512 * MIB), ("--cache-ram 8192", 8 * GIB), ("-cram 0", 0)],
)
def test_beginnings_of_prompts_take_what_the_user_says(arguments: str, size: int) -> None:
    words = parse_words(tuple(arguments.split()))
    assert prompt_cache(words) == size
    need = GgufMemory(GgufHeader(SIZES, GIB), words).cpu_need(tokens=512)
    assert isinstance(need, CpuNeed)
    assert [term.bytes for term in need.terms if term.name == "prompt_cache"] == [size]


def test_beginnings_of_prompts_need_a_limit() -> None:
    with pytest.raises(Failure, match="--cache-ram") as caught:
        prompt_cache(parse_words(("--cache-ram", "-1")))
    assert caught.value.cause is Cause.BAD_SPEC


@pytest.mark.parametrize("sizes", [SIZES, {"block_count": 2}])
def test_a_claim_that_the_spec_states_wins(sizes: dict[str, int]) -> None:
    memory = GgufMemory(GgufHeader(sizes, 8 * GIB), parse_words(()), claim=9 * GIB)
    need = memory.need(QUERY)
    assert isinstance(need, Need)
    assert need.claim(24 * GIB) == 9 * GIB


def test_layers_are_divided_within_a_claim_that_the_spec_states() -> None:
    header = GgufHeader(SIZES, 8 * GIB, PARTS)
    part = GgufMemory(header, parse_words(()), claim=9 * GIB).with_layers(1)
    need = part.need(QUERY)
    assert isinstance(need, Need)
    assert need.claim(24 * GIB) == 9 * GIB
    assert need.fits(24 * GIB, 9 * GIB)


def test_the_bytes_of_a_draft_model_can_be_stated() -> None:
    unknown = GgufHeader({}, 0)
    for loaded, known in ((Loaded(draft=unknown), False), (Loaded(stated_draft=GIB), True)):
        need = GgufMemory(GgufHeader(SIZES, GIB), parse_words(()), loaded).need(QUERY)
        assert isinstance(need, Need) == known


def test_a_draft_model_stays_on_the_accelerators_with_few_layers() -> None:
    header, draft = GgufHeader(SIZES, 8 * GIB, PARTS), Loaded(draft=GgufHeader(SIZES, GIB))
    alone, with_draft = (
        GgufMemory(header, parse_words(()), loaded).with_layers(1) for loaded in (Loaded(), draft)
    )
    assert with_draft.ram_of_layers(4096, 1) == alone.ram_of_layers(4096, 1)
    need = with_draft.need(QUERY)
    assert isinstance(need, Need)
    found = need.term("draft")
    assert found
    assert found.bytes > GIB
