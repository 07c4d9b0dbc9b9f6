"""The flows on a real Prefect server: deployed, served, started through its API, cancelled."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.e2e.workplace import REPOSITORY, Workplace
from tests.flows.requests import ENGINE, NEVER_READY, Parameters, assert_undone, until_started
from tests.prefect_server import PrefectServer
from tests.waiting import until

pytestmark = pytest.mark.server

MODELS = {
    *("ModelSpec", "EngineSpec", "ContainerSettings", "PlacementSpec", "MemorySpec"),
    *("ReadinessSpec", "Deadlines", "ProbeSpec", "PromptSpec", "MessageSpec", "CompareSpec"),
    "AcceptanceSpec",
    *("SpeculativeSpec", "AdapterSpec", "AdapterUpdatesSpec", "ExtendedCacheSpec"),
    *("StoppingSpec", "RestartSpec", "ReplaceSpec", "RedeploySpec", "ApplicationSpec"),
    *("AutoscalingSpec", "ScheduleSpec", "VllmSettings", "LlamaCppSettings", "TritonSettings"),
}
FLEET = {
    *("Fleet", "Host", "Avoided", "Reserve", "StaticAccelerator", "SshWay", "TlsWay"),
    *("Registries", "RegistryLogin", "EngineVersions", "EngineVersion"),
    "RayCluster",
}
ENUMS = {
    *("EngineName", "RuntimeName", "Mode", "Policy", "Strategy", "DraftMethod"),
    *("IpcMode", "NetworkMode", "RestartPolicy", "Distributed", "ApiKey", "WhenDead"),
    *("ReplaceStrategy", "OnDrift", "Approval", "Routing", "TritonInstance"),
}
WORKING_DIRECTORY = "prefect.deployments.steps.set_working_directory"
"""The step that keeps Prefect from copying a folder for each run."""


class TestDeployed:
    """`prefect deploy --all`."""

    @pytest.mark.parametrize("name", ["deploy-model/deploy", "plan-model/plan"])
    def test_the_schema_holds_every_nested_model(
        self, deployed: dict[str, dict[str, Any]], name: str
    ) -> None:
        schema = deployed[name]["parameter_openapi_schema"]
        assert set(schema["definitions"]) == MODELS | FLEET | ENUMS
        assert schema["required"] == ["spec"]
        assert schema["properties"]["spec"]["$ref"] == "#/definitions/ModelSpec"
        assert "fleet" not in schema["properties"], "no form shows it"
        fleet = schema["patternProperties"]["^fleet$"]
        assert fleet == {"$ref": "#/definitions/Fleet"}, "and the API checks it"
        assert deployed[name]["parameters"] == {}
        for definition in MODELS | FLEET:
            assert schema["definitions"][definition]["additionalProperties"] is False

    def test_a_rollback_and_a_set_of_models_have_forms_too(
        self, deployed: dict[str, dict[str, Any]]
    ) -> None:
        back = deployed["rollback-model/rollback"]["parameter_openapi_schema"]
        assert (back["required"], set(back["definitions"])) == (["name"], FLEET)
        many = deployed["apply-models/apply"]["parameter_openapi_schema"]
        assert many["required"] == ["specs"]
        assert many["properties"]["specs"]["items"]["$ref"] == "#/definitions/ModelSpec"
        assert set(many["definitions"]) == MODELS | FLEET | ENUMS
        waves = deployed["redeploy-models/redeploy"]["parameter_openapi_schema"]
        assert "required" not in waves or not waves["required"]
        assert set(waves["definitions"]) == FLEET
        assert waves["properties"]["wave"]["pattern"]
        for schema in (back, many, waves):
            assert all(field["description"] for field in schema["properties"].values())

    @pytest.mark.parametrize("name", ["deploy-model/deploy", "plan-model/plan"])
    def test_every_field_of_the_form_is_explained(
        self, deployed: dict[str, dict[str, Any]], name: str
    ) -> None:
        schema = deployed[name]["parameter_openapi_schema"]
        assert all(field["description"] for field in schema["properties"].values())
        definitions = schema["definitions"]
        for definition in MODELS | FLEET:
            for field, content in definitions[definition]["properties"].items():
                # A field that is described as its model is stands for itself.
                model = definitions.get(content.get("$ref", "").rpartition("/")[2], {})
                tab = content.get("anyOf", [{}])[0]
                assert {**tab, **model, **content}.get("description"), f"{definition}.{field}"

    def test_the_name_to_retire_has_its_pattern(self, deployed: dict[str, dict[str, Any]]) -> None:
        name = deployed["retire-model/retire"]["parameter_openapi_schema"]["properties"]["name"]
        assert name["pattern"]
        assert name["description"]

    def test_an_adapter_to_load_has_the_form_of_the_spec(
        self, deployed: dict[str, dict[str, Any]]
    ) -> None:
        schema = deployed["load-adapter/load-adapter"]["parameter_openapi_schema"]
        assert schema["properties"]["model"]["pattern"]
        assert set(schema["definitions"]) == {"AdapterSpec"}
        adapter = schema["definitions"]["AdapterSpec"]["properties"]
        assert all(field["description"] for field in adapter.values())
        unload = deployed["unload-adapter/unload-adapter"]["parameter_openapi_schema"]
        assert unload["required"] == ["model", "adapter"]
        assert all(field["pattern"] for field in unload["properties"].values())

    def test_parameters_are_enforced_and_runs_go_to_the_work_pool(
        self, deployed: dict[str, dict[str, Any]]
    ) -> None:
        for deployment in deployed.values():
            assert deployment["enforce_parameter_schema"] is True
            assert deployment["work_pool_name"] == "moorage"
            assert deployment["work_queue_name"] == "default"
            assert "moorage" in deployment["tags"]
            assert deployment["description"]
            (step,) = deployment["pull_steps"]
            assert step == {WORKING_DIRECTORY: {"directory": "."}}

    def test_the_nightly_schedule_is_there_and_switched_off(
        self, deployed: dict[str, dict[str, Any]]
    ) -> None:
        (nightly,) = deployed["deploy-model/deploy"]["schedules"]
        assert (nightly["slug"], nightly["active"]) == ("nightly", False)
        assert nightly["schedule"]["cron"] == "0 3 * * *"
        assert nightly["parameters"]["spec"]["source"] == f"file://{REPOSITORY}/models/tiny-llama"


SPEC = {"name": "refused", "source": "file:///nowhere"}
TOKEN = "hf_" + "A1b2C3d4" * 4
PAGE = REPOSITORY / "docs" / "what-people-see.md"


@pytest.mark.usefixtures("deployed")
class TestRefused:
    """Parameters that the server refuses: no flow run comes to be."""

    @pytest.mark.parametrize(
        ("wrong", "field", "detail"),
        [
            ({"engine": {"name": "vlm"}}, "spec.engine.name", "Did you mean 'vllm'?"),
            ({"engine": {"shm": "lots"}}, "spec.engine.shm", "allowed: a size such as 16GiB"),
            ({"replicas": 0}, "spec.replicas", "minimum of 1"),
            ({"placement": {"strategy": "best"}}, "spec.placement.strategy", "binpack"),
            ({"placement": {"accelerators": ["cuda"]}}, "spec.placement.accelerators[0]", "cuda"),
            ({"precision": "int3"}, "spec.precision", "unknown key"),
            ({"source": "org/repo"}, "spec.source", "allowed: hf://org/repo"),
            ({"source": None}, "spec.source", "found None; allowed: string"),
            ({"secrets": {"HF_TOKEN": TOKEN}}, "spec.secrets.HF_TOKEN", "a secret in clear"),
            ({"engine": {"env": {"X": TOKEN}}}, "spec.engine.env.X", "a secret in clear"),
            ({"engine": {"args": [f"--x={TOKEN}"]}}, "spec.engine.args[0]", "a secret in clear"),
            ({"restart": {"attempts": -1}}, "spec.restart.attempts", "minimum of 1"),
        ],
    )
    def test_a_bad_spec(
        self, prefect_server: PrefectServer, wrong: dict[str, Any], field: str, detail: str
    ) -> None:
        spec = {"name": "refused", "source": "file:///nowhere", **wrong}
        refusal = prefect_server.ask("deploy-model/deploy", {"spec": spec})
        assert refusal.status_code == 409
        assert f"{field}: " in refusal.json()["detail"]
        assert detail in refusal.json()["detail"]
        assert TOKEN not in refusal.text

    def test_all_mistakes_at_once(self, prefect_server: PrefectServer) -> None:
        """As `docs/what-people-see.md` shows them."""
        spec = {"name": "No Name!", "source": "org/repo", "engine": {"name": "vlm"}}
        refusal = prefect_server.ask("deploy-model/deploy", {"spec": spec, "forse": True})
        mistakes = refusal.json()["detail"].removeprefix("Error creating flow run: ")
        assert f"```text\n{mistakes}\n```\n" in PAGE.read_text(), mistakes

    @pytest.mark.parametrize(
        ("deployment", "parameters", "detail"),
        [
            (
                "plan-model/plan",
                {"spec": SPEC, "fleet": {"hosts": [{"name": "a", "adress": "local"}]}},
                "fleet.hosts[0].adress: unknown key",
            ),
            ("retire-model/retire", {"name": "../etc"}, "name: found '../etc'; allowed: letters"),
            ("deploy-model/deploy", {}, "'spec' is required, but missing"),
            ("deploy-model/deploy", {"spce": SPEC}, "spce: unknown key; allowed are"),
            ("deploy-model/deploy", {"spce": SPEC}, "Did you mean 'spec'?"),
        ],
    )
    def test_bad_parameters(
        self, prefect_server: PrefectServer, deployment: str, parameters: Any, detail: str
    ) -> None:
        refusal = prefect_server.ask(deployment, parameters)
        assert refusal.status_code == 409
        assert detail in refusal.json()["detail"]


CHAIN = [
    "compare <- ",
    "resolve <- compare",
    "derive <- resolve",
    "survey <- derive",
    "place <- survey",
    "have <- place",
    "launch <- have",
    "verify <- launch",
    "measure <- verify",
    "facts <- measure",
    "release <- facts",
]


def _chain(served: PrefectServer, flow_run: str) -> list[str]:
    """The tasks of a run as its graph shows them: each with those that it comes right after."""
    nodes = dict(served.get(f"/flow_runs/{flow_run}/graph-v2")["nodes"])
    kinds = {one: node["label"].split()[0] for one, node in nodes.items()}
    parents = {one: {kinds[two["id"]] for two in node["parents"]} for one, node in nodes.items()}
    return [f"{kinds[one]} <- {', '.join(sorted(parents[one]))}" for one in nodes]


class TestServed:
    """`moorage serve`, and runs that are begun through the API."""

    @pytest.mark.process
    def test_a_model_is_deployed_answers_and_is_retired(
        self, served: PrefectServer, parameters: Parameters, workplace: Workplace
    ) -> None:
        name = workplace.named("tiny")
        created = [
            served.ask(
                "deploy-model/deploy", parameters("tiny", engine=ENGINE), idempotency_key=name
            )
            for _ in range(2)
        ]
        assert [answer.status_code for answer in created] == [201, 200]
        first, second = (answer.json()["id"] for answer in created)
        assert first == second
        done = served.ended(first)
        assert _state(done) == ("COMPLETED", "Completed"), done["state"]["message"]
        endpoint = re.search(r"http://\S+/v1", done["state"]["message"])
        assert endpoint
        assert _answer(endpoint[0], name)
        record = served.artifacts(done["id"])[f"release-{name}"]
        assert record["type"] == "markdown"
        assert f"{name}.v1" in record["data"]
        assert "serves" in served.log(done["id"])
        assert "Finished in state Completed()" not in served.log(done["id"])
        # The server writes task runs a moment after they have ended.
        until(lambda: len(_chain(served, first)) == len(CHAIN))
        assert _chain(served, first) == CHAIN

        again = served.run("deploy-model/deploy", parameters("tiny", engine=ENGINE))
        assert _state(again) == ("COMPLETED", "Unchanged")
        assert f"{name}.v1 already serves" in again["state"]["message"]
        assert [row.id for row in workplace.releases("tiny")] == [f"{name}.v1"]

        claim = {"name": name, "requested_by": "ann, ticket 7"}
        gone = served.run("retire-model/retire", claim)
        assert _state(gone) == ("COMPLETED", "Completed")
        requester = workplace.ledger.releases.transitions(f"{name}.v1")[-1].requested_by
        assert requester.startswith("Prefect's API: ")
        assert f"deployment {gone['deployment_id']}" in requester
        assert requester.endswith("; claimed: ann, ticket 7")
        until(lambda: _fingerprint(gone) in served.log(gone["id"]))
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{endpoint[0]}/models")
        assert workplace.processes() == []

    def test_a_plan_starts_nothing(
        self, served: PrefectServer, parameters: Parameters, workplace: Workplace
    ) -> None:
        done = served.run("plan-model/plan", parameters("planned", engine=ENGINE))
        assert _state(done) == ("COMPLETED", "Completed")
        assert f"plan-{workplace.named('planned')}" in served.artifacts(done["id"])
        assert workplace.releases("planned") == []

    @pytest.mark.process
    def test_a_run_that_is_cancelled_undoes_what_it_did(
        self, served: PrefectServer, parameters: Parameters, workplace: Workplace
    ) -> None:
        created = served.ask("deploy-model/deploy", parameters("slow", engine=NEVER_READY)).json()
        until_started(workplace, "slow")
        served.cancel(created["id"])
        assert _state(served.ended(created["id"])) == ("CANCELLED", "Cancelled")
        assert_undone(workplace, "slow")

    def test_what_the_schema_would_refuse_is_refused_by_the_flow_too(
        self, served: PrefectServer, parameters: Parameters, workplace: Workplace
    ) -> None:
        wrong = parameters("unchecked", engine={"name": "vlm"}, replicas="many")
        failed = served.run("deploy-model/deploy", wrong, enforce_parameter_schema=False)
        assert failed["state"]["type"] == "FAILED"
        assert "spec.engine.name: Input should be 'auto'" in failed["state"]["message"]
        assert "spec.replicas: Input should be a valid integer" in failed["state"]["message"]
        assert workplace.releases("unchecked") == []

    def test_a_parameter_that_no_flow_has(
        self, served: PrefectServer, parameters: Parameters, workplace: Workplace
    ) -> None:
        wrong = {**parameters("unknown", engine=ENGINE), "flet": {}}
        refused = served.ask("deploy-model/deploy", wrong)
        assert refused.status_code == 409
        assert "flet: unknown key" in refused.json()["detail"]
        # Where nobody checks, Prefect ends the process before the flow begins.
        crashed = served.run("deploy-model/deploy", wrong, enforce_parameter_schema=False)
        assert crashed["state"]["type"] == "CRASHED"
        assert workplace.releases("unknown") == []

    def test_an_argument_that_the_engine_does_not_know_is_refused_by_the_flow_too(
        self, served: PrefectServer, parameters: Parameters, workplace: Workplace
    ) -> None:
        engine = {"name": "vllm", "runtime": "docker", "args": ["--max-modle-len 4096"]}
        for name in ("plan-model/plan", "deploy-model/deploy"):
            failed = served.run(name, parameters("typo", engine=engine))
            assert failed["state"]["type"] == "FAILED"
            artifact = served.artifacts(failed["id"])[f"failure-{workplace.named('typo')}"]
            assert "Did you mean `--max-model-len`?" in artifact["data"]
        assert workplace.releases("typo") == []

    def test_a_failure_is_the_state_of_the_run_and_an_artifact(
        self, served: PrefectServer, parameters: Parameters, workplace: Workplace
    ) -> None:
        wrong = parameters("lost", engine=ENGINE, source="file:///there/is/no/model")
        failed = served.run("deploy-model/deploy", wrong)
        assert failed["state"]["type"] == "FAILED"
        assert failed["state"]["message"].startswith("The model was not found: ")
        artifact = served.artifacts(failed["id"])[f"failure-{workplace.named('lost')}"]
        assert "source-missing" in artifact["data"]

    def test_what_is_served_runs_here_and_not_in_the_work_pool(self, served: PrefectServer) -> None:
        deployment = served.deployment("deploy-model/deploy")
        assert deployment["work_pool_name"] is None
        assert deployment["paused"] is False
        assert deployment["enforce_parameter_schema"] is True
        assert set(deployment["parameter_openapi_schema"]["definitions"]) >= MODELS


def test_a_command_against_the_server_is_a_flow_run_there(
    workplace: Workplace, prefect_server: PrefectServer
) -> None:
    begun = datetime.now(UTC).isoformat()
    workplace.run("reconcile")
    since = {"name": {"any_": ["reconcile"]}, "start_time": {"after_": begun}}
    runs = prefect_server.post("/flow_runs/filter", {"flow_runs": since})
    own = [run["state"]["type"] for run in runs if run["deployment_id"] is None]
    assert own == ["COMPLETED"]


def _fingerprint(flow_run: dict[str, Any]) -> str:
    """Of the parameters of a run, as docs/prefect.md makes it with `jq -cS`."""
    compact = json.dumps(flow_run["parameters"], sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(compact.encode() + bytes([10])).hexdigest()}"


def _state(flow_run: dict[str, Any]) -> tuple[str, str]:
    return flow_run["state"]["type"], flow_run["state"]["name"]


def _answer(endpoint: str, model: str) -> str:
    messages = [{"role": "user", "content": "hello"}]
    body = {"model": model, "messages": messages, "max_tokens": 4}
    answer = httpx.post(f"{endpoint}/chat/completions", json=body, timeout=60)
    return str(answer.raise_for_status().json()["choices"][0]["message"]["content"])
