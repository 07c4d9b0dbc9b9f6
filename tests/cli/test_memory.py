"""`moorage memory`: counted from a configuration and headers; the weights are never read."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from moorage.cli.app import app
from moorage.cli.output import WIDE, out
from moorage.common.failures import ExitCode
from moorage.common.units import GIB
from moorage.memory.dtypes import SIZES
from tests.hub.tiny import with_header
from tests.memory.models import known, needed, plain

Golden = Callable[[str, str], None]
Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixed width, and no transformers, which takes seconds to import."""
    monkeypatch.setattr(out, "_width", WIDE)
    monkeypatch.setattr("moorage.adapters.files.pretrained._completed", lambda *_: None)


def write_model(folder: Path, name: str) -> None:
    """A model whose weights are a hole in a file behind their header."""
    config, headers = known(name)
    entries, offset = {}, 0
    for key, header in headers.items():
        end = offset + prod(header.shape) * SIZES[header.dtype]
        entry = {"dtype": header.dtype, "shape": header.shape, "data_offsets": [offset, end]}
        entries[key], offset = entry, end
    start = with_header(json.dumps(entries).encode())
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    with (folder / "model.safetensors").open("wb") as file:
        file.write(start)
        file.truncate(len(start) + offset)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the command on a spec of Qwen3-0.6B."""
    write_model(tmp_path / "qwen", "qwen3-0.6b")

    def command(*args: str, name: str = "qwen", **spec: Any) -> Result:
        path = tmp_path / "spec.yaml"
        path.write_text(json.dumps({"name": name, "source": f"file://{name}", **spec}))
        return CliRunner().invoke(app, ["memory", str(path), *args])

    return command


def test_the_breakdown_of_one_accelerator(run: Run, golden: Golden) -> None:
    result = run("--accelerator", "24GiB")
    assert result.exit_code == 0
    golden("memory_one.txt", result.output)


def test_common_sizes_side_by_side(run: Run, golden: Golden) -> None:
    result = run()
    assert result.exit_code == 0
    golden("memory_sizes.txt", result.output)


def test_a_model_that_does_not_fit_says_how_much_is_missing(run: Run, golden: Golden) -> None:
    result = run("--accelerator", "2GiB", "--context", "4096", "--concurrency", "2")
    assert result.exit_code == ExitCode.NO_FIT
    golden("memory_too_large.txt", result.output)


def test_the_same_as_json(run: Run, golden: Golden) -> None:
    result = run(
        *("--accelerator", "h100", "--tp", "2", "--pp", "2", "--context", "8192"),
        *("--concurrency", "3", "--kv-cache-dtype", "fp8", "--json"),
    )
    assert result.exit_code == 0
    golden("memory.json", result.output)
    answer = json.loads(result.output)
    need = answer["need"]
    assert (need["tensor_parallel_size"], need["pipeline_parallel_size"]) == (2, 2)
    assert need["exact_bytes"] + need["estimated_bytes"] == need["inside"] + need["outside"]
    assert "--kv-cache-dtype fp8" in answer["flags"]


def test_what_the_spec_says_is_asked_and_the_command_line_wins(run: Run) -> None:
    engine = {"args": ["--tensor-parallel-size=4", "--max-num-seqs=8"]}
    spec = {"engine": engine, "context": 2048, "concurrency": 5}
    need = json.loads(run("--accelerator", "24GiB", "--json", **spec).output)["need"]
    assert (need["tensor_parallel_size"], need["tokens"], need["concurrency"]) == (4, 2048, 5)
    assert need["batch"]["seqs"] == 8
    args = ("--tp", "2", "--context", "1024", "--concurrency", "6")
    won = json.loads(run("--accelerator", "24GiB", "--json", *args, **spec).output)["need"]
    assert (won["tensor_parallel_size"], won["tokens"], won["concurrency"]) == (2, 1024, 6)


def test_a_stated_claim_is_shown_as_such(run: Run) -> None:
    result = run("--accelerator", "24GiB", memory={"claim": "12GiB"})
    assert "12.00 of 24.00 GiB of each accelerator, as the spec states" in result.output


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (
            ("--tp", "3", "--accelerator", "24GiB"),
            "vLLM would not start: Total number of attention heads (16) must be divisible by"
            " tensor parallel size (3).",
        ),
        (
            ("--context", "999999"),
            "vLLM would not start: User-specified max_model_len (999999) is greater than the"
            " derived max_model_len (40960).",
        ),
    ],
)
def test_a_refusal_is_one_sentence(run: Run, args: tuple[str, ...], sentence: str) -> None:
    result = run(*args)
    assert result.output.strip() == sentence
    assert result.exit_code == ExitCode.NO_FIT


def test_a_refusal_as_json(run: Run) -> None:
    engine = {"args": ["--speculative-config", '{"model": "org/draft"}']}
    result = run("--accelerator", "24GiB", "--json", engine=engine)
    refusal = json.loads(result.output)["refusal"]
    assert refusal["kind"] == "unknown"
    assert "the draft model (org/draft) is not read" in refusal["reason"]
    assert result.exit_code == ExitCode.NO_FIT


@pytest.mark.parametrize(
    ("args", "detail"),
    [
        (("--accelerator", "abacus"), "neither a size such as 24GiB nor one of NVIDIA T4"),
        (("--kv-cache-dtype", "int3"), "--kv-cache-dtype int3: not one of auto, bfloat16"),
    ],
)
def test_a_choice_that_does_not_exist_is_bad_input(
    run: Run, args: tuple[str, ...], detail: str
) -> None:
    result = run(*args, "--json")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert detail in json.loads(result.output)["error"]["detail"]


def test_the_longest_context_and_the_most_requests_are_exactly_what_fits(run: Run) -> None:
    args = ("--accelerator", "6GiB", "--context", "2048", "--concurrency", "4", "--json")
    answer = json.loads(run(*args).output)
    model, total = plain("qwen3-0.6b"), 6 * GIB
    for fits, more in ((True, 0), (False, 1)):
        tokens, requests = answer["longest"] + more, answer["most_requests"] + more
        assert needed(model, 6, tokens=tokens, concurrency=4).fits(total, total) is fits
        assert needed(model, 6, tokens=2048, concurrency=requests).fits(total, total) is fits


def test_it_needs_no_prefect(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("flows", "tasks")]:
        monkeypatch.delitem(sys.modules, name)
    assert run("--accelerator", "24GiB").exit_code == 0
    assert not {"flows", "tasks"} & {name.partition(".")[0] for name in sys.modules}


@pytest.mark.parametrize(
    ("engine", "inside"),
    [
        ({"version": "0.30.0"}, {"cuda_graphs": True}),
        ({"version": "0.26.0"}, {"cuda_graphs": False}),
        ({"image": "registry.own/vllm:7"}, {"cuda_graphs": False, "graph_reserve": True}),
    ],
    ids=["sets aside", "does not", "unknown"],
)
def test_graphs_count_where_the_version_puts_them(
    run: Run, engine: dict[str, str], inside: dict[str, bool]
) -> None:
    result = run("--accelerator", "24GiB", "--json", engine=engine)
    terms = json.loads(result.output)["need"]["terms"]
    assert {term["name"]: term["inside"] for term in terms if "graph" in term["name"]} == inside
