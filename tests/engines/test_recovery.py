from __future__ import annotations

from typing import Any

import pytest

from moorage.common.failures import Cause
from moorage.common.values import Origin
from moorage.engines.flags import Flag
from moorage.engines.labels import LABEL_ROLE
from moorage.engines.launch import LaunchPlan
from moorage.engines.recovery import Remedy, correction_for, with_correction
from tests.builders import a_container, a_plan, a_spec

REMEDY = Remedy(
    option="--max-model-len",
    before="8192",
    value="4096",
    fields=("context",),
    reason="the engine named it",
)
FIRST, SECOND = "moorage-tiny.v1-r0-leader", "moorage-tiny.v1-r1-leader"


def corrected(**spec: Any) -> Any:
    return correction_for(a_spec(**spec), Cause.ENGINE_KV_CACHE_TOO_SMALL, "the line", REMEDY)


def flag(*tokens: str, origin: Origin = Origin.DERIVED) -> Flag:
    return Flag(tokens=tokens, origin=origin, reason="")


def planned(*flags: Flag) -> LaunchPlan:
    containers = tuple(a_container(name=name, command=flags) for name in (FIRST, SECOND))
    return a_plan(*containers)


def test_a_correction_holds_both_numbers_and_the_line_that_names_the_new_one() -> None:
    found = corrected()
    assert (found.before, found.value, found.stated) == ("8192", "4096", "")
    assert (found.cause, found.evidence) == (Cause.ENGINE_KV_CACHE_TOO_SMALL, "the line")
    assert found.summary == "--max-model-len 4096 instead of 8192: the engine named it"


@pytest.mark.parametrize(
    ("spec", "stated"),
    [
        ({"context": 8192}, "context"),
        ({"engine": {"args": ["--max-model-len 8192"]}}, "engine.args"),
        ({"engine": {"args": ["--max_model_len=8K"]}}, "engine.args"),
        ({"engine": {"args": ["--max-num-seqs 8"]}}, ""),
    ],
)
def test_what_the_user_stated_is_corrected_too_and_said_so(
    spec: dict[str, Any], stated: str
) -> None:
    found = corrected(**spec)
    assert found.stated == stated
    assert (f"though `{stated}` states it" in found.summary) == bool(stated)


@pytest.mark.parametrize(
    "spec",
    [
        {"readiness": {"second_try": False}},
        {"engine": {"command": ["vllm", "serve", "{{model_path}}", "--max-model-len", "8192"]}},
    ],
)
def test_there_is_no_second_try_where_the_spec_leaves_none(spec: dict[str, Any]) -> None:
    assert corrected(**spec) is None


def test_without_a_remedy_there_is_no_correction() -> None:
    assert correction_for(a_spec(), Cause.ENGINE_EXITED, "", None) is None


@pytest.mark.parametrize(
    "command",
    [
        (flag("vllm", "serve", "/m"), flag("--max-model-len", "8192"), flag("--port", "1")),
        (flag("vllm", "serve", "/m"), flag("--port", "1")),
    ],
)
def test_the_planned_value_gives_way_to_the_corrected_one(command: tuple[Flag, ...]) -> None:
    plan = with_correction(planned(*command), corrected(), {FIRST, SECOND})
    for container in plan.containers:
        assert container.argv == ("vllm", "serve", "/m", "--port", "1", "--max-model-len", "4096")
        assert container.command[-1].origin == Origin.DERIVED
        assert container.command[-1].reason == "second try: the engine named it"


def test_the_users_words_stay_and_the_correction_after_them_counts() -> None:
    words = flag("--max-model-len", "8192", "--enforce-eager", origin=Origin.USER)
    plan = with_correction(planned(flag("vllm", "serve", "/m"), words), corrected(), {FIRST})
    assert plan.containers[0].argv[3:] == (*words.tokens, "--max-model-len", "4096")


def test_a_container_that_runs_is_left_as_it_is_and_the_plan_warns() -> None:
    before = planned(flag("vllm", "serve", "/m"), flag("--max-model-len", "8192"))
    plan = with_correction(before, corrected(), {SECOND})
    assert plan.containers[0] == before.containers[0]
    assert plan.containers[1].argv[-2:] == ("--max-model-len", "4096")
    assert plan.warnings == (f"second try with {corrected().summary}",)


def test_what_only_joins_the_hosts_is_never_corrected() -> None:
    labels = a_container().labels
    names = ("head", "leader", "follower")
    containers = tuple(
        a_container(
            name=name,
            command=(flag("ray", "start"),),
            labels={**labels, LABEL_ROLE: "ray-head" if name == "head" else name},
            awaits="" if name == "head" else "head",
        )
        for name in names
    )
    plan = planned().model_copy(update={"containers": containers})
    found = with_correction(plan, corrected(), names)
    assert ["--max-model-len" in c.argv for c in found.containers] == [False, True, False]
