"""(a) The embedded default: transformers as a process of this machine."""

from __future__ import annotations

import pytest

from tests.e2e.workplace import Workplace
from tests.openai_client import openai_client

pytestmark = [pytest.mark.process, pytest.mark.server]

ENGINE = {"name": "transformers", "runtime": "process"}


def test_a_model_is_deployed_answers_is_replaced_and_retired(workplace: Workplace) -> None:
    spec = workplace.spec(engine=ENGINE)
    name = workplace.named("tiny")

    first = workplace.json("deploy", spec)
    assert first["outcome"] == "completed"
    endpoint = first["release"]["workloads"][0]["endpoint"]
    client = openai_client(endpoint)
    answer = client.chat.completions.create(
        model=name, messages=[{"role": "user", "content": "hello"}], max_tokens=4
    )
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"

    again = workplace.json("deploy", spec)
    assert again["outcome"] == "unchanged"
    assert again["release"]["id"] == first["release"]["id"]
    assert len(workplace.releases()) == 1

    changed = workplace.json(
        "deploy", workplace.spec(engine=ENGINE, port=workplace.first_port + 39)
    )
    assert changed["release"]["replaced"] == first["release"]["id"]
    assert [(row.id, row.state) for row in workplace.releases()] == [
        (f"{name}.v2", "running"),
        (f"{name}.v1", "superseded"),
    ]
    assert {claim.release for claim in workplace.claims()} == {f"{name}.v2"}
    assert workplace.running() == {f"moorage-{name}.v2-r0-leader"}

    workplace.run("retire", name)
    assert workplace.is_clean()
    assert workplace.json("status", name)[0]["state"] == "stopped"


def test_the_record_explains_every_argument_and_every_step(workplace: Workplace) -> None:
    workplace.run("deploy", workplace.spec(engine=ENGINE))
    record = workplace.json("show", workplace.named("tiny"))

    flags = record["plan"]["containers"][0]["command"]
    assert all(flag["origin"] in ("user", "default", "derived") for flag in flags)
    assert all(flag["reason"] for flag in flags)
    assert [step["name"] for step in record["steps"]] == [
        "compare",
        "resolve",
        "derive",
        "survey",
        "place",
        "image",
        "stage",
        "launch",
        "verify",
    ]
    phases = [probe["phase"] for probe in record["readiness"][0]["probes"]]
    assert phases == ["listening", "healthy", "answered"]
    assert "argument" in workplace.run("show", workplace.named("tiny")).stdout


def test_what_plan_prints_is_what_deploy_runs(workplace: Workplace) -> None:
    spec = workplace.spec(engine=ENGINE)
    planned = workplace.json("plan", spec)
    assert workplace.is_clean()
    assert workplace.releases() == []

    deployed = workplace.json("deploy", spec)["release"]
    assert deployed["plan"] == planned["plan"]
    claimed = ("host", "port", "ram_bytes", "accelerators")
    for seat, wanted in zip(
        deployed["placement"]["seats"], planned["placement"]["seats"], strict=True
    ):
        assert all(seat[key] == wanted[key] for key in claimed)
