"""Pages about many models are something a person likes to read, however many they are."""

from __future__ import annotations

from collections.abc import Callable

from moorage.operations.history.desired import Applied
from moorage.operations.reconcile.actions import Action, ActionKind, ActionOutcome
from moorage.operations.redeploy.intent import ModelOutcome, Redeployed
from moorage.operations.redeploy.selection import meant
from moorage.reports.operations_report import (
    Links,
    Wave,
    applied_document,
    changing,
    redeployment_page,
)

Golden = Callable[[str, str], None]

MOVED = "moved branch: hf://org/llama a3c1f0e5b7d9 -> 5bb1e04c2a11"


def done(model: str, wave: int, **fields: object) -> Redeployed:
    given = {
        "outcome": ModelOutcome.REDEPLOYED,
        "before": f"{model}.v3",
        "after": f"{model}.v4",
        "why": MOVED,
        "seconds": 61.5,
        "flow_run": f"run-of-{model}",
        **fields,
    }
    return Redeployed.model_validate({"model": model, "wave": wave, **given})


def linked(one: Redeployed) -> Links:
    """As a server's UI has them."""
    ui = "http://prefect:4200"
    record = f"{ui}/artifacts/key/release-{one.model}" if one.after else ""
    return Links(run=f"{ui}/runs/flow-run/{one.flow_run}" if one.flow_run else "", record=record)


WAVES = (
    Wave(number=1, models=("llama-8b", "llama-70b"), seconds=125),
    Wave(number=2, models=("mistral", "qwen"), seconds=340.2),
    Wave(number=3, models=("whisper",), seconds=0.01),
)
ENDED = (
    done("llama-8b", 1),
    done("llama-70b", 1, outcome="unchanged", after="", seconds=2.25),
    done("mistral", 2),
    done(
        "qwen",
        2,
        outcome="failed",
        after="",
        cause="engine-out-of-memory",
        message="moorage-qwen.v4-r0-leader: CUDA out of memory | tried 2.00 GiB",
        seconds=278,
    ),
    done(
        "whisper",
        3,
        outcome="not begun",
        after="",
        seconds=0,
        flow_run="",
        message="1 failed before: stopped at first",
    ),
    done("phi", 0, outcome="notified", after="", seconds=0, flow_run=""),
    done("bge", 0, outcome="unchanged", after="", seconds=0, flow_run="", why=""),
    done("e5", 0, outcome="unchanged", after="", seconds=0, flow_run="", why=""),
)


def test_the_page_tells_what_failed_first_then_every_wave_then_what_was_left(
    golden: Golden,
) -> None:
    page = redeployment_page("redeploy all", WAVES, ENDED, linked)
    golden("redeployment.md", page.markdown())


def test_while_it_goes_on_the_page_tells_what_is_still_to_come(golden: Golden) -> None:
    begun = (WAVES[0], *(wave.model_copy(update={"seconds": 0.0}) for wave in WAVES[1:]))
    page = redeployment_page("redeploy all", begun, ENDED[:3], linked)
    golden("redeployment_begun.md", page.markdown())


def test_a_hundred_models_are_one_line_each() -> None:
    names = [f"m{number:03}" for number in range(100)]
    waves = [
        Wave(number=at // 25 + 1, models=tuple(names[at : at + 25]), seconds=60)
        for at in range(0, 100, 25)
    ]
    ended = [done(name, at // 25 + 1) for at, name in enumerate(names)]
    lines = redeployment_page("redeploy all", waves, ended, linked).markdown().splitlines()
    rows = [line for line in lines if line.startswith("| [m")]
    assert len(rows) == 100
    assert len(lines) < 150


def test_of_one_wave_there_is_no_table_of_waves_and_of_none_there_is_a_line() -> None:
    one = redeployment_page("redeploy all", WAVES[:1], ENDED[:2]).markdown()
    assert "## Waves" not in one
    assert "| llama-8b |" in one
    assert redeployment_page("redeploy all", (), ()).markdown() == (
        "# redeploy all\n\nthere was nothing to do."
    )


def test_a_run_is_named_after_what_is_meant() -> None:
    assert meant([], {}, "") == "all"
    assert meant(["a", "b", "c", "d*", "e"], {}, "") == "a, b, c and 2 more"
    assert meant([], {"tier": "gold", "team": "x"}, "") == "with team=x, tier=gold"
    assert meant(["a*"], {"tier": "gold"}, "/specs") == "a* with tier=gold from /specs"


def test_a_page_of_what_was_applied_has_the_failures_first() -> None:
    done = Applied(
        model="a", action="deploy", outcome="done", message="a.v1 serves", release="a.v1"
    )
    failed = Applied(model="b", action="deploy", outcome="failed", message="no host fits")
    (section,) = applied_document([done, failed]).sections
    assert section.rows == (
        ("b", "deploy", "failed", "-", "no host fits"),
        ("a", "deploy", "done", "a.v1", "a.v1 serves"),
    )


def test_a_probe_that_could_not_be_sent_is_no_quiet_end() -> None:
    probe = Action(kind=ActionKind.PROBE, reason="its last answer is some time ago")
    failed = ActionOutcome(action=probe, done=False, summary="failed: secret-missing")
    wait = ActionOutcome(action=Action(kind=ActionKind.WAIT, reason="not yet"), done=False)
    assert changing([ActionOutcome(action=probe, summary="it answers"), wait, failed]) == (failed,)
