from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.launch import differences, image_of, load, main

FILE = Path(__file__).parent / "data" / "launch.json"
LOADED = load(FILE)
CASES = {case["id"]: case for case in LOADED["cases"]}
IMAGE = image_of(LOADED["catalogues"])

Change = Callable[[dict[str, Any]], None]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_launch_is_made_of_what_the_peers_is(case: dict[str, Any]) -> None:
    assert not differences(case, IMAGE)


def changed(name: str, change: Change) -> set[str]:
    case = copy.deepcopy(CASES[f"launch-{name}"])
    change(case["expected"])
    return {field for field, _, _ in differences(case, IMAGE)}


def _set(*path: str, value: Any) -> Change:
    def change(expected: dict[str, Any]) -> None:
        *parents, last = path
        for key in parents:
            expected = expected[key]
        expected[last] = value

    return change


@pytest.mark.parametrize(
    ("name", "change", "field"),
    [
        ("argv_single-02", lambda e: e["argv"].append("--more"), "argv.--more"),
        ("argv_single-02", lambda e: e["argv"].pop(), "argv.--served-model-name"),
        ("argv_single-02", lambda e: e["argv"].insert(0, "/other"), "argv.first"),
        ("user_parameters-01", _set("user_argv", value=["--seed=-1"]), "user_argv"),
        ("user_parameters-01", lambda e: e["user_argv"].reverse(), "argv.user"),
        ("injected-02", lambda e: e["injected"].append("--more"), "injected.--more"),
        ("injected-02", lambda e: e["injected_stored"].pop(), "injected_stored.--host"),
        ("ray-01", lambda e: e["command"].insert(1, "more"), "command.start"),
        ("env-01", _set("env", "OMP_NUM_THREADS", value="1"), "env.OMP_NUM_THREADS"),
        ("env-01", _set("script", value=True), "script"),
        ("ray-01", _set("ray", value=None), "ray"),
        ("ray-01", _set("ray", "ports", value=[]), "ray.ports"),
        ("ray-02", lambda e: e["ray"]["command"].append("--head"), "ray.command.--head"),
        ("ray-02", _set("ray", "mounts", value=[]), "ray.mounts"),
        ("ray-02", _set("release_name_suffix", value=""), "release_name_suffix"),
        ("container-01", _set("container", "uid", value=1), "container.uid"),
        (
            "container-01",
            _set("container", "devices", value={"amd.com/devices": "0,1"}),
            "container.devices",
        ),
        ("max_model_len-01", _set("derived_max_model_len", value=1), "derived_max_model_len"),
        ("version_gates-01", _set("engine_version", value="1"), "engine_version"),
        ("ascend-01", _set("image", value="other:1"), "image"),
        ("env-01", _set("error", value={"class": "dp_mismatch"}), "error"),
        ("argv_distributed-08", _set("error", value={"class": "dp_mismatch"}), "error"),
        ("argv_distributed-08", _set("error", value=None), "error"),
        ("registry_override-01", _set("image", value="other:1"), "image"),
    ],
)
def test_any_other_answer_is_a_difference(name: str, change: Change, field: str) -> None:
    assert field in changed(name, change)


@pytest.mark.parametrize(
    ("name", "change", "field"),
    [
        ("argv_multi_gpu-03", lambda e: e["argv"].append("--more"), "argv.--more"),
        ("ascend-04", _set("env", "CPU_AFFINITY_CONF", value="2"), "env.CPU_AFFINITY_CONF"),
        ("kv_offload-03", _set("env", "OMP_NUM_THREADS", value="2"), "env.OMP_NUM_THREADS"),
    ],
)
def test_a_defect_excuses_its_own_aspect_only(name: str, change: Change, field: str) -> None:
    assert changed(name, change) == {field}


@pytest.mark.parametrize("marked", [True, False])
def test_the_same_text_in_other_words_is_a_better_answer_where_that_is_marked(marked: bool) -> None:
    case = copy.deepcopy(CASES["launch-user_parameters-06"])
    case["input"]["model"]["backend_parameters"] = ['--limit-mm-per-prompt {"image": 2}']
    cut = ["--limit-mm-per-prompt", "{image:", "2}"]
    case["expected"] = {"error": None, "user_argv": cut}
    if marked:
        case["peer_defect"] = "only a value after `=` is kept whole"
    assert bool(differences(case, IMAGE)) is not marked
    case["expected"]["user_argv"] = [*cut, "--more"]
    assert differences(case, IMAGE)


@pytest.mark.parametrize("marked", [True, False])
def test_what_fails_for_its_splitting_alone_may_be_answered(marked: bool) -> None:
    case = copy.deepcopy(CASES["launch-run_command-02"])
    case["expected"] = {"error": {"class": "unbalanced_quotes"}}
    if not marked:
        del case["peer_defect"]
    assert bool(differences(case, IMAGE)) is not marked


@pytest.mark.parametrize("name", ["dp_mismatch", "uneven_hosts", "never_heard_of"])
def test_a_refusal_meets_each_class_that_the_cases_leave_open(name: str) -> None:
    case = copy.deepcopy(CASES["launch-argv_distributed-08"])
    case["input"]["model"]["backend_parameters"][-1] = "--data-parallel-size=5"
    case["expected"] = {"error": {"class": name}}
    assert not differences(case, IMAGE)


def test_without_its_mark_a_defect_is_a_difference() -> None:
    marked = [case for case in CASES.values() if "peer_defect" in case]
    bare = [{k: v for k, v in case.items() if k != "peer_defect"} for case in marked]
    assert sum(bool(differences(case, IMAGE)) for case in bare) >= len(marked) // 2


def test_variables_of_the_host_are_left_out_of_both_sides() -> None:
    def without(expected: dict[str, Any]) -> None:
        del expected["env"]["HTTP_PROXY"]

    assert not changed("env-02", without)


def test_a_case_that_cannot_be_read_is_a_failure() -> None:
    case = copy.deepcopy(CASES["launch-env-01"])
    del case["input"]["model"]
    ((field, _, answer),) = differences(case, IMAGE)
    assert (field, answer) == ("exception", "KeyError('model')")


def test_a_file_is_counted_and_its_differences_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(FILE) == 0
    assert capsys.readouterr().out == f"{len(CASES)} passed, 0 failed\n"
    wrong = copy.deepcopy([CASES["launch-env-01"], CASES["launch-env-02"]])
    wrong[0]["expected"]["script"] = True
    file = tmp_path / "cases.json"
    file.write_text(json.dumps({"cases": wrong, "catalogues": LOADED["catalogues"]}))
    assert main(file) == 1
    answer = capsys.readouterr().out.splitlines()
    assert answer == ["launch-env-01 script: expected True, got False", "1 passed, 1 failed"]
