"""Replacing what serves while clients ask non-stop, each looking the endpoint up before it asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.clients import Clients
from tests.e2e.conftest import container_engine, process_engine
from tests.e2e.workplace import Workplace

pytestmark = [pytest.mark.docker, pytest.mark.server]

TOLERANCE_SECONDS = 1.0
"""How far what a client saw may be from the record: it looks every 20 ms, on a busy machine."""

GOOD = {"prompts": [{"prompt": "Say ok.", "expect": "^ok$", "max_seconds": 20}]}
WRONG = {"prompts": [{"prompt": "What is 6 * 7?", "expect": r"\b42\b"}]}


def surge(workplace: Workplace, engine: dict[str, Any], **more: Any) -> Path:
    return workplace.spec(engine=engine, replace={"strategy": "surge", "linger_seconds": 2}, **more)


def asked_a_while(workplace: Workplace, clients: Clients, release: str) -> None:
    workplace.wait_until(lambda: clients.answered.get(release, 0) > 5)


def test_three_replacements_in_a_row_fail_no_request(
    workplace: Workplace, lifecycle_image: str
) -> None:
    workplace.run("deploy", surge(workplace, container_engine(lifecycle_image, ROUND="0")))
    with Clients(workplace, "tiny") as clients:
        for turn in range(1, 4):
            spec = surge(workplace, container_engine(lifecycle_image, ROUND=str(turn)))
            release = workplace.json("deploy", spec)["release"]
            assert release["downtime_seconds"] == 0
            asked_a_while(workplace, clients, release["id"])
    assert clients.failed == []
    assert clients.gaps == []
    assert len(clients.answered) == 4
    assert [row.state for row in workplace.releases()] == ["running", *["superseded"] * 3]
    print(f"answered: {clients.answered}")


def test_stop_first_is_obeyed_though_there_is_room_and_its_downtime_is_what_clients_see(
    workplace: Workplace, lifecycle_image: str
) -> None:
    name = workplace.named("tiny")
    workplace.run("deploy", workplace.spec(engine=container_engine(lifecycle_image)))
    spec = workplace.spec(
        engine=container_engine(lifecycle_image, "slow:2"), replace={"strategy": "stop-first"}
    )
    with Clients(workplace, "tiny", dither_seconds=0.1) as clients:
        workplace.wait_until(lambda: bool(clients.answered))
        outcome = workplace.json("deploy", spec)
        workplace.wait_until(lambda: f"{name}.v2" in clients.answered)
    assert clients.failed == []
    release, [gap] = outcome["release"], clients.gaps
    assert release["downtime_seconds"] == pytest.approx(gap, abs=TOLERANCE_SECONDS)
    assert release["downtime_seconds"] > 2
    assert release["replacement"] == f"{name}.v1 stops first: `replace.strategy` says so"
    assert "without service" in outcome["message"]
    shown = workplace.run("show", name).stdout
    assert "Downtime" in shown
    assert "no release served for" in workplace.run("diff", name).stdout
    print(f"recorded {release['downtime_seconds']} s, seen {gap:.3f} s")


def test_a_release_that_does_not_pass_the_gate_never_serves(
    workplace: Workplace, lifecycle_image: str
) -> None:
    engine = container_engine(lifecycle_image)
    first = workplace.json("deploy", surge(workplace, engine, readiness=GOOD))["release"]
    [gate] = first["gate"]
    assert gate["answers"][0]["answered"] == "ok"
    assert gate["tokens_per_second"] > 0
    with Clients(workplace, "tiny") as clients:
        error = workplace.json("deploy", surge(workplace, engine, readiness=WRONG), code=6)["error"]
    assert error["cause"] == "gate-failed"
    assert "asked 'What is 6 * 7?', answered 'ok'" in error["detail"]
    assert clients.failed == []
    assert list(clients.answered) == [first["id"]]
    failed, old = workplace.releases()
    assert (failed.state, old.state) == ("error", "running")
    assert failed.release
    assert failed.release.gate[0].wrong
    assert failed.release.downtime_seconds == 0
    assert len(workplace.containers()) == 1


def test_a_slower_release_is_refused_and_the_one_that_stopped_for_it_serves_again(
    workplace: Workplace, lifecycle_image: str
) -> None:
    engine = container_engine(lifecycle_image)
    workplace.run("deploy", workplace.spec(engine=engine, readiness=GOOD))
    # No engine is a hundred times as fast as itself.
    faster = {**GOOD, "compare": {"min_tokens_per_second_ratio": 100}}
    spec = workplace.spec(engine=engine, readiness=faster, replace={"strategy": "stop-first"})
    error = workplace.json("deploy", spec, code=6)["error"]
    assert error["cause"] == "gate-failed"
    assert "tokens/s" in error["detail"]
    failed, old = workplace.releases()
    assert (failed.state, old.state) == ("error", "running")
    assert failed.release
    assert failed.release.downtime_seconds
    [route] = workplace.ledger.routes.routes(workplace.named("tiny"))
    assert route.release == old.id
    assert workplace.run("chat", workplace.named("tiny"), "Hello").stdout.strip() == "ok"


@pytest.mark.process
def test_a_canary_is_watched_before_the_rest_starts(
    workplace: Workplace, lifecycle_program: Path
) -> None:
    canary = {"strategy": "canary", "canary_share": 0.5, "canary_seconds": 2, "linger_seconds": 0}
    more: dict[str, Any] = {"replicas": 3, "placement": {"ram": "64MiB"}, "replace": canary}
    engine = process_engine(lifecycle_program, ROUND="0")
    workplace.run("deploy", workplace.spec(engine=engine, **more))
    name = workplace.named("tiny")

    engine = process_engine(lifecycle_program, ROUND="1")
    release = workplace.json("deploy", workplace.spec(engine=engine, **more))["release"]
    assert release["replacement"].startswith("canary: 2 of 3 replicas, watched for 2 s; then")
    steps = [step["name"] for step in release["steps"]]
    assert steps[steps.index("launch") :][:5] == ["launch", "verify", "canary", "launch", "verify"]
    assert len(release["workloads"]) == 3

    more["replace"] = {**canary, "canary_seconds": 300}
    dying = workplace.spec(engine=process_engine(lifecycle_program, "dies-later:8"), **more)
    before = workplace.running()
    error = workplace.json("deploy", dying, code=6)["error"]
    assert error["cause"] == "engine-exited"
    failed = workplace.releases()[0]
    assert failed.release
    # It died as a canary: its replicas had been proven, and the third never started.
    assert [workload.replica for workload in failed.release.workloads] == [0, 1]
    assert len(failed.release.readiness) == 2
    assert workplace.running() == before
    assert len(workplace.ledger.routes.routes(name)[0].endpoints) == 3
