from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause, Failure
from moorage.engines.launch import Mount
from moorage.engines.registry import ENGINES
from moorage.engines.updates import adapter_probes, lacks_adapter, refusal, seen_by
from moorage.readiness.protocol import Phase
from moorage.spec import EngineName, RuntimeName
from tests.builders import a_container, a_profile, a_spec

FOLDER = "/home/loaded/tiny"
PLACE = f"{FOLDER}/poet/a1"


def test_engines_that_grant_the_wish_say_how_adapters_are_loaded() -> None:
    for engine in ENGINES.values():
        assert (engine.updates is not None) is ("lora_updates" in engine.features)


def test_a_name_and_a_directory_are_posted() -> None:
    updates = ENGINES[EngineName.VLLM].updates
    assert updates
    probe = updates.loading("poet", "/loaded/poet/a1")
    assert (probe.method, probe.path) == ("POST", "/v1/load_lora_adapter")
    assert probe.body == {"lora_name": "poet", "lora_path": "/loaded/poet/a1"}
    probe = updates.unloading("poet")
    assert (probe.path, probe.body) == ("/v1/unload_lora_adapter", {"lora_name": "poet"})


def test_an_adapter_is_proven_under_its_own_name() -> None:
    probes = adapter_probes(a_spec(), a_profile(), "poet", "tiny:poet")
    assert [probe.phase for probe in probes] == [Phase.LISTED, Phase.ANSWERED]
    assert probes[0].name == "poet"
    assert probes[1].body
    assert probes[1].body["model"] == "tiny:poet"


def test_without_a_request_in_the_spec_it_is_only_listed() -> None:
    silent = a_spec(readiness={"probe": {"request": False}})
    (probe,) = adapter_probes(silent, a_profile(), "poet", "poet")
    assert probe.phase == Phase.LISTED


def test_a_container_sees_its_adapters_elsewhere_and_a_process_where_they_lie() -> None:
    mounts = (Mount(source=FOLDER, target="/loaded"),)
    container = a_container(runtime=RuntimeName.DOCKER, mounts=mounts)
    assert seen_by(container, FOLDER, PLACE) == "/loaded/poet/a1"
    assert seen_by(a_container(), FOLDER, PLACE) == PLACE


def test_a_container_that_does_not_see_the_folder_takes_no_adapters() -> None:
    with pytest.raises(Failure) as caught:
        seen_by(a_container(runtime=RuntimeName.DOCKER), FOLDER, PLACE)
    assert caught.value.cause is Cause.ADAPTERS_FIXED


@pytest.mark.parametrize(
    ("status", "answer", "cause", "detail"),
    [
        (
            500,
            {"error": {"message": "LoRA rank 64 is greater than max_lora_rank 16.", "code": 500}},
            Cause.ADAPTER_REFUSED,
            "HTTP 500: LoRA rank 64",
        ),
        (
            400,
            {"success": False, "error_message": "LoRA adapter poet with rank 64 is incompatible"},
            Cause.ADAPTER_REFUSED,
            "HTTP 400: LoRA adapter poet with rank 64",
        ),
        (404, {"detail": "Not Found"}, Cause.ADAPTERS_FIXED, "no such endpoint: Not Found"),
        (
            404,
            {"error": {"message": "No adapter found for /loaded/poet/a1"}},
            Cause.ADAPTER_REFUSED,
            "No adapter found",
        ),
        (0, "connection refused", Cause.ADAPTER_REFUSED, "no answer: connection refused"),
        (502, "<html>", Cause.ADAPTER_REFUSED, "HTTP 502: <html>"),
    ],
)
def test_a_refusal_is_told_in_the_words_of_the_engine(
    status: int, answer: Any, cause: Cause, detail: str
) -> None:
    found = refusal("poet", "tiny-r0", status, answer)
    assert (found.cause, detail in found.detail) == (cause, True), found.detail


def test_an_adapter_that_is_gone_is_told_from_an_endpoint_that_is_not_there() -> None:
    assert lacks_adapter(
        "poet", 404, {"error": {"message": "The lora adapter 'poet' cannot be found."}}
    )
    gone = {"error_message": "LoRA with name poet does not exist. Loaded LoRAs: dict_keys([])"}
    assert lacks_adapter("poet", 400, gone)
    assert not lacks_adapter("po", 400, gone)
    assert not lacks_adapter("poet", 404, {"detail": "Not Found"})
    assert not lacks_adapter("poet", 500, {"error": {"message": "poet"}})


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"message": "LoRA rank 64 is greater than max_lora_rank 16."}},
        {"error_message": "Please ensure that its rank is within the configured `--max-lora-rank`"},
    ],
)
def test_a_rank_that_is_too_large_names_the_field_that_raises_it(answer: Any) -> None:
    assert "lora_updates.rank" in refusal("poet", "tiny-r0", 500, answer).suggestion
