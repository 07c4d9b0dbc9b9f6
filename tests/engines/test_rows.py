"""Which test holds each row of the checklist, and which proves each mode that an engine serves.

The rows are D1 to D9 of Docker Model Runner's backend interface, and E1 to E10 of Triton's backend
for vLLM.
"""

from __future__ import annotations

import ast
from functools import cache
from itertools import chain
from typing import Any

import pytest

from moorage.engines.registry import ENGINES
from moorage.spec import EngineName, Mode
from tests.builders import a_spec
from tests.e2e.workplace import REPOSITORY

NAMES = "tests/engines/test_model_runner_rows.py"
TRITON = "tests/e2e/test_triton.py"
TRITON_PLANS = "tests/engines/triton/test_plans.py"
REQUESTS = f"{TRITON}::test_requests_over_http_and_grpc"

ROWS = {
    "D1": (
        f"{NAMES}::test_d1_a_name_is_lower_case_and_fits_into_paths_of_urls_and_files",
        f"{NAMES}::test_d1_every_name_that_says_an_engine_is_registered_once",
    ),
    "D2": (
        "tests/adapters/engines/test_installations.py::test_it_is_installed_once_and_found_by_deploys",
        "tests/adapters/engines/test_installations.py::test_another_version_takes_over_and_the_old_one_stays",
        "tests/e2e/test_engines.py::test_an_engine_of_its_own_serves_a_model",
    ),
    "D3": (
        "tests/e2e/test_run.py::test_a_server_ends_with_its_terminal",
        "tests/e2e/test_run.py::test_a_model_that_does_not_start_leaves_nothing_and_says_why",
    ),
    "D4": (
        "tests/gateway/test_real.py::test_a_request_that_nobody_answers_is_refused_in_the_shape_of_openai",
    ),
    "D5": (
        "tests/engines/test_status.py::test_a_status_is_read",
        "tests/engines/test_status.py::test_what_is_written_is_read_back",
        "tests/engines/test_status.py::test_a_host_tells_what_is_there",
    ),
    "D6": (
        f"{NAMES}::test_d6_an_engine_serves_its_modes_and_no_other",
        f"{NAMES}::test_d6_an_unknown_mode_is_an_error",
    ),
    "D7": (
        "tests/spec/test_keep_alive.py::test_a_duration_is_read_and_written_back_as_it_was_given",
        "tests/spec/test_keep_alive.py::test_anything_else_is_refused_with_what_may_be_written",
    ),
    "D8": (
        "tests/spec/test_engine_settings.py::test_settings_are_arguments_that_args_win_over",
        "tests/spec/test_engine_settings.py::test_what_is_out_of_range_or_of_another_engine_is_refused",
        "tests/e2e/test_llama_cpp.py::test_a_draft_model_makes_drafts",
    ),
    "D9": (
        f"{NAMES}::test_d9_the_memory_that_it_takes_is_known_before_it_loads",
        "tests/engines/test_installed.py::test_layers_that_images_of_an_engine_share_count_once",
        "tests/adapters/engines/test_disk_usage.py::test_each_host_has_its_own_and_what_is_not_told_is_not_known",
    ),
    "E1": (
        f"{TRITON}::test_a_model_is_served_replaced_rolled_back_and_retired",
        f"{TRITON}::test_what_the_version_does_not_take_is_refused_before_it_starts",
        f"{TRITON_PLANS}::test_adapters_stand_in_a_file_of_their_own",
    ),
    "E2": (REQUESTS,),
    "E3": (
        f"{TRITON_PLANS}::test_several_accelerators_are_left_to_vllm",
        f"{TRITON_PLANS}::test_a_plan_says_exactly_what_will_run",
    ),
    "E4": (f"{TRITON}::test_adapters_are_named_by_requests",),
    "E5": (REQUESTS,),
    "E6": (REQUESTS,),
    "E7": (
        f"{TRITON}::test_a_dead_engine_behind_a_ready_server_is_found_and_replaced",
        f"{TRITON}::test_the_backends_own_health_check_unloads_a_dead_model",
    ),
    "E8": (REQUESTS,),
    "E9": (f"{TRITON}::test_requests_in_flight_end_before_the_server",),
    "E10": (REQUESTS,),
}

VLLM_FEATURES = "tests/e2e/test_vllm_features.py"
LLAMA = "tests/e2e/test_llama_cpp.py"
MODES = "tests/e2e/test_modes.py"
TRANSCRIPTION = "tests/e2e/test_transcription.py"
TRANSFORMERS = "tests/e2e/test_transformers.py"

PROOFS = {
    EngineName.VLLM: {
        Mode.COMPLETION: "tests/e2e/test_vllm.py::test_vllm_serves_a_chat",
        Mode.EMBEDDING: f"{VLLM_FEATURES}::test_embeddings",
        Mode.RERANKING: f"{VLLM_FEATURES}::test_scores",
        Mode.CLASSIFICATION: f"{VLLM_FEATURES}::test_labels",
        Mode.TRANSCRIPTION: f"{TRANSCRIPTION}::test_a_real_whisper_transcribes_a_second_of_sound",
    },
    EngineName.TRANSFORMERS: {
        Mode.COMPLETION: f"{TRANSFORMERS}::test_a_model_is_deployed_answers_is_replaced_and_retired"
    },
    EngineName.LLAMA_CPP: {
        Mode.COMPLETION: f"{LLAMA}::test_a_gguf_file_is_served_replaced_and_retired",
        Mode.EMBEDDING: f"{LLAMA}::test_a_model_that_embeds_or_ranks_proves_it",
        Mode.RERANKING: f"{LLAMA}::test_a_model_that_embeds_or_ranks_proves_it",
    },
    EngineName.SGLANG: {},
    EngineName.TRITON: {
        Mode.COMPLETION: f"{TRITON}::test_a_model_is_served_replaced_rolled_back_and_retired"
    },
    EngineName.CUSTOM: {
        Mode.COMPLETION: f"{MODES}::test_a_custom_engine_proves_its_mode",
        Mode.EMBEDDING: f"{MODES}::test_a_custom_engine_proves_its_mode",
        Mode.RERANKING: f"{MODES}::test_a_custom_engine_proves_its_mode",
        Mode.CLASSIFICATION: f"{MODES}::test_a_custom_engine_proves_its_mode",
        Mode.TRANSCRIPTION: f"{MODES}::test_a_whisper_transcribes_a_second_of_sound",
        Mode.IMAGE_GENERATION: f"{MODES}::test_a_custom_engine_proves_its_mode",
    },
}
"""The test in which a server that runs here answers the request of the mode in a deploy."""

PLANNED = {
    EngineName.VLLM: {Mode.IMAGE_GENERATION},
    EngineName.SGLANG: {Mode.COMPLETION, Mode.EMBEDDING, Mode.RERANKING, Mode.TRANSCRIPTION},
    EngineName.TRITON: {Mode.EMBEDDING},
}
"""What cannot be run here; docs/engines.md says why."""

NEEDED: dict[EngineName, dict[str, Any]] = {
    EngineName.VLLM: {"image": "acme/vllm-omni:1"},
    EngineName.TRITON: {"triton": {"openai": True}},
    EngineName.CUSTOM: {"command": ["serve"], "runtime": "process"},
}
"""Fields without which an engine does not serve all of its modes."""


def claimed(name: EngineName) -> set[Mode]:
    """The modes that an engine says that it serves."""
    spec = a_spec(engine={"name": name, **NEEDED.get(name, {})})
    return {mode for mode in Mode if mode != Mode.AUTO and ENGINES[name].serves(spec, mode)}


@cache
def functions(file: str) -> set[str]:
    """The functions of a file of tests."""
    tree = ast.parse((REPOSITORY / file).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


def test_every_row_has_its_tests() -> None:
    assert set(ROWS) == {*(f"D{n}" for n in range(1, 10)), *(f"E{n}" for n in range(1, 11))}


@pytest.mark.parametrize(
    "named",
    sorted({*chain(*ROWS.values()), *chain(*(proofs.values() for proofs in PROOFS.values()))}),
)
def test_what_is_named_is_there(named: str) -> None:
    file, _, function = named.partition("::")
    assert function in functions(file)


@pytest.mark.parametrize("name", ENGINES)
def test_a_mode_that_an_engine_serves_is_proven_or_said_to_be_planned(name: EngineName) -> None:
    planned = PLANNED.get(name, set())
    assert claimed(name) == {*PROOFS[name], *planned}
    assert not planned.intersection(PROOFS[name])


@pytest.mark.parametrize("name", ENGINES)
def test_the_docs_have_the_same_matrix(name: EngineName) -> None:
    words = dict.fromkeys(PROOFS[name], "yes") | dict.fromkeys(PLANNED.get(name, ()), "planned")
    cells = [words.get(mode, "-") for mode in Mode if mode != Mode.AUTO]
    page = (REPOSITORY / "docs" / "engines.md").read_text()
    assert f"| `{name}` | {' | '.join(cells)} |" in page
