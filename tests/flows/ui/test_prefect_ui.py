"""What a person sees who deploys with the Prefect UI, in a real browser."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prefect.settings import temporary_settings

from tasks.prefect_runs import remove_quiet_runs
from tests.e2e.workplace import Workplace
from tests.flows.conftest import DEPLOYMENTS, SECRET
from tests.flows.requests import RECONCILE, end_as
from tests.flows.ui.browser import Browser
from tests.prefect_server import ENDED, PrefectServer
from tests.waiting import until

pytestmark = [pytest.mark.ui, pytest.mark.server, pytest.mark.process]

UIS = ("/v2", "")
"""The UI that Prefect shows first, and the one before it."""

FORMS = (
    *("deploy-by-name/deploy-by-name", "deploy-quick/deploy-quick"),
    *("deploy-model/deploy", "retire-model/retire", "redeploy-models/redeploy"),
    *("reconcile-fleet/reconcile", "rollback-model/rollback", "apply-models/apply"),
)
LONGEST_FORM = 2600
"""Pixels of a form that nobody has opened a section of."""

TOO_WIDE = """() => [...document.querySelectorAll("table, p, h1, h2")]
    .filter(part => part.scrollWidth > part.parentElement.clientWidth + 1)
    .map(part => part.innerText.slice(0, 80))"""


class TestForms:
    def test_all_deployments_are_listed(self, browser: Browser) -> None:
        browser.open("/v2/deployments?limit=25", "site-a")
        listed = browser.text()
        assert all(name.partition("/")[2] in listed for name in DEPLOYMENTS)
        browser.picture("deployments")

    @pytest.mark.parametrize("name", FORMS)
    def test_a_deployment_says_what_it_is_for(
        self, browser: Browser, served: PrefectServer, name: str
    ) -> None:
        deployment = served.deployment(name)
        assert len(deployment["description"]) > 20
        browser.open(f"/v2/deployments/deployment/{deployment['id']}", "Description")
        assert browser.tab("Description", deployment["description"])

    @pytest.mark.parametrize("name", FORMS)
    @pytest.mark.parametrize("ui", UIS)
    def test_a_run_is_asked_for_with_a_form(
        self, browser: Browser, served: PrefectServer, ui: str, name: str
    ) -> None:
        schema = open_form(browser, served, name, ui)["parameter_openapi_schema"]
        shown, labels = browser.text().replace("`", ""), set(browser.labels())
        for field, content in schema["properties"].items():
            needed = field in schema.get("required", ())
            assert (field if needed else f"{field} (Optional)") in labels
            assert content["description"].replace("`", "").split("\n")[0] in shown
        # A class shows up where a field of its own model has no title.
        assert not {label for label in labels if re.match(r"\w+Spec\b|Field\b", label)}
        browser.picture(f"form-{name.partition('/')[2]}{ui.replace('/', '-') or '-v1'}")

    def test_what_must_be_filled_in_comes_first_and_the_rest_is_filled_in(
        self, browser: Browser, served: PrefectServer
    ) -> None:
        open_form(browser, served, "deploy-model/deploy")
        labels = browser.field("spec").labels()
        assert labels[:4] == ["spec", "Name", "Source", "Engine (Optional)"]
        assert [label for label in labels[1:] if "Optional" not in label] == ["Name", "Source"]
        assert "auto" in browser.field("spec", "Engine (Optional)").place.inner_text()
        assert "is a const" not in browser.text()
        assert "type is None" not in browser.text()
        assert browser.json_fields() <= {"Secrets"}, "they have names of one's own"

    @pytest.mark.parametrize("ui", UIS)
    def test_a_section_is_closed_until_its_tab_is_chosen(
        self, browser: Browser, served: PrefectServer, ui: str
    ) -> None:
        open_form(browser, served, "deploy-model/deploy", ui)
        assert browser.length() < LONGEST_FORM
        for section, field in (("Placement", "RAM"), ("Fields", "Labels"), ("Restart", "Attempts")):
            assert f"{field} (Optional)" not in browser.labels()
            browser.page.get_by_text(section, exact=True).last.click()
            browser.page.get_by_text(f"{field} (Optional)", exact=True).first.wait_for()
        browser.picture(f"form-sections{ui.replace('/', '-') or '-v1'}", browser.length())

    def test_the_files_of_the_site_can_be_chosen(
        self, browser: Browser, served: PrefectServer, workplace: Workplace
    ) -> None:
        name = "deploy-by-name/deploy-by-name"
        (workplace.folder / "deployments").mkdir(exist_ok=True)
        files = [workplace.spec(one, f"deployments/{one}") for one in ("llama-8b", "qwen-7b")]
        until(lambda: "qwen-7b" in str(served.deployment(name)["parameter_openapi_schema"]))
        open_form(browser, served, name)
        browser.field("spec").choose("qwen-7b")
        assert "qwen-7b" in browser.field("spec").place.inner_text()
        browser.picture("form-deploy-by-name-chosen")
        for file in files:
            file.unlink()

    def test_a_mistake_is_told_at_its_field(self, browser: Browser, served: PrefectServer) -> None:
        open_form(browser, served, "deploy-model/deploy")
        browser.field("spec", "Name").write("No Name!")
        browser.page.get_by_role("button", name="Submit").click()
        browser.see("'source' is required, but missing.")
        assert (
            "found 'No Name!'; allowed: letters" in browser.field("spec", "Name").place.inner_text()
        )
        browser.picture("form-mistakes")


@pytest.fixture(scope="module")
def run(browser: Browser, served: PrefectServer, workplace: Workplace) -> dict[str, Any]:
    """The run of a deploy that was filled in and sent in the browser, at its end."""
    open_form(browser, served, "deploy-model/deploy")
    browser.field("spec", "Name").write(workplace.named("shown"))
    browser.field("spec", "Source").write(f"file://{workplace.model}")
    browser.field("spec", "Advanced (Optional)").turn_to("Fields")
    port = browser.field("spec", "Advanced (Optional)", "Port (Optional)")
    port.write(str(workplace.first_port))
    browser.field("spec", "Secrets (Optional)").write_json('{"PLANTED": "UI_SECRET"}')
    browser.field("spec", "Engine (Optional)").turn_to("Engine")
    browser.field("spec", "Engine (Optional)", "Name (Optional)").choose("vllm")
    browser.field("spec", "Engine (Optional)", "Runtime (Optional)").choose("process")
    browser.picture("form-filled-in")
    done = served.ended(browser.submitted())
    # Lines come a moment later, and the page of a run that has ended asks for them once.
    until(lambda: "compare (" in served.log(done["id"]))
    return done


class TestDeployed:
    def test_the_page_of_the_run_tells_its_story(
        self, browser: Browser, run: dict[str, Any], workplace: Workplace
    ) -> None:
        name = workplace.named("shown")
        assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
        browser.open(f"/v2/runs/flow-run/{run['id']}", "Completed")
        browser.see(f"deploy {name}")
        assert {"moorage", "deploy"} <= set(run["tags"])
        logs = browser.tab("Logs", "compare (")
        browser.picture("run-logs")
        resolved = f"resolve file://{workplace.model}"
        tasks = browser.tab("Task Runs", f"release {name}.v1", resolved)
        browser.picture("run-tasks")
        kinds = ("model", "placement", "plan", "readiness", "release")
        artifacts = browser.tab("Artifacts", *(f"{kind}-{name}" for kind in kinds))
        browser.picture("run-artifacts")
        shown = (json.dumps(run), logs, tasks, artifacts, browser.tab("Details", "Flow Run ID"))
        assert not any(SECRET in part for part in shown)

    def test_the_graph_of_the_run_is_drawn(self, browser: Browser, run: dict[str, Any]) -> None:
        """That it is a chain is told by the tasks and what each of them waited for."""
        with browser.with_graphs() as other:
            other.open(f"/v2/runs/flow-run/{run['id']}", "Completed")
            until(lambda: other.has_drawn(colours=500))
            other.picture("run-graph")

    @pytest.mark.parametrize(
        ("kind", "heading", "tells"),
        [
            ("model", "Profile of {}", "LlamaForCausalLM"),
            ("placement", "Placement of {}", "taken"),
            ("plan", "Plan for {}: {}.v1", "--served-model-name"),
            ("readiness", "Readiness of {}.v1", "answered"),
            ("release", "{}.v1 serves {}", "http://127.0.0.1:"),
        ],
    )
    def test_an_artifact_is_a_page_that_one_can_read(
        self,
        browser: Browser,
        served: PrefectServer,
        run: dict[str, Any],
        workplace: Workplace,
        kind: str,
        heading: str,
        tells: str,
    ) -> None:
        name = workplace.named("shown")
        artifact = served.artifacts(run["id"])[f"{kind}-{name}"]
        assert_readable(browser, artifact, heading.replace("{}", name), tells)

    def test_a_form_that_a_release_links_to_is_filled_in(
        self, browser: Browser, served: PrefectServer, run: dict[str, Any], workplace: Workplace
    ) -> None:
        page = served.artifacts(run["id"])[f"release-{workplace.named('shown')}"]["data"]
        links = dict(re.findall(r"\[(\w+ it)\]\((\S+)\)", page))
        assert set(links) == {"Redeploy it", "Retire it"}
        browser.open(links["Retire it"].removeprefix(served.url.removesuffix("/api")), "Run Name")
        name = browser.field("name").place.locator("textarea, input").first
        assert name.input_value() == workplace.named("shown")

    def test_the_plan_of_a_change_can_be_read_before(
        self, browser: Browser, served: PrefectServer, workplace: Workplace, run: dict[str, Any]
    ) -> None:
        spec = {**run["parameters"]["spec"], "context": 1024}
        planned = served.run("plan-model/plan", {"spec": spec})
        name = workplace.named("shown")
        artifact = served.artifacts(planned["id"])[f"plan-{name}"]
        assert_readable(browser, artifact, f"Plan for {name}", "--max-model-len 1024")

    def test_a_redeployment_is_a_page_with_a_bar(
        self, browser: Browser, served: PrefectServer, workplace: Workplace, run: dict[str, Any]
    ) -> None:
        name = run["parameters"]["spec"]["name"]
        done = served.run("redeploy-models/redeploy", {"names": [name], "force": True})
        assert done["state"]["type"] == "COMPLETED", done["state"]["message"]
        pages = served.artifacts(done["id"])
        assert_readable(browser, pages["redeploy"], "redeploy", f"{name}.v2")
        browser.open(f"/v2/artifacts/artifact/{pages['redeploy-progress']['id']}", "100%")
        browser.picture("redeploy-progress")
        assert workplace.releases("shown")[0].id == f"{name}.v2"

    def test_a_person_reads_the_plan_and_agrees(
        self, browser: Browser, served: PrefectServer, workplace: Workplace, run: dict[str, Any]
    ) -> None:
        name = workplace.named("shown")
        serves = workplace.releases("shown")[0].id
        agreed = {"context": 1024, "redeploy": {"approval": "required"}}
        spec = {**run["parameters"]["spec"], **agreed}
        run_id = served.ask("deploy-model/deploy", {"spec": spec}).json()["id"]
        served.until(run_id, {"PAUSED", *ENDED})
        # A run is paused a moment before its form and its plan are there.
        until(lambda: workplace.json("approvals"), unless=lambda: served.has_ended(run_id))
        browser.open(f"/v2/runs/flow-run/{run_id}", "Paused")
        browser.page.locator("button[aria-haspopup=menu]").first.click()
        browser.page.get_by_role("menuitem", name="Resume").click()
        dialog = browser.page.get_by_role("dialog")
        dialog.get_by_text("Whether the plan is approved.").wait_for()
        dialog.get_by_text(f"It would replace {serves}").first.wait_for()
        assert dialog.get_by_role("heading", name=f"Plan for {name}").is_visible()
        browser.picture("approval")
        dialog.get_by_role("switch").click()
        dialog.get_by_role("button", name="Resume").click()
        dialog.wait_for(state="hidden")
        assert served.ended(run_id)["state"]["type"] == "COMPLETED"
        new, before = workplace.releases("shown")[:2]
        assert (new.state, before.id, before.state) == ("running", serves, "superseded")

    def test_a_deploy_that_failed_says_why_and_what_to_do(
        self, browser: Browser, served: PrefectServer, workplace: Workplace, run: dict[str, Any]
    ) -> None:
        name = workplace.named("dies")
        engine = {"name": "vllm", "runtime": "process", "env": {"LIFECYCLE": "die"}}
        port = workplace.first_port + 1
        spec = {**run["parameters"]["spec"], "name": name, "port": port, "engine": engine}
        failed = served.run("deploy-model/deploy", {"spec": spec})
        why = "The engine does not support this architecture"
        browser.open(f"/v2/runs/flow-run/{failed['id']}", "Failed")
        browser.tab("Details", why)
        browser.picture("run-failed")
        artifact = served.artifacts(failed["id"])[f"failure-{name}"]
        assert_readable(browser, artifact, why, "Last lines of the engine's log")

    def test_reconciling_every_minute_fills_no_page(
        self, browser: Browser, served: PrefectServer, run: dict[str, Any]
    ) -> None:
        quiet = served.ask(RECONCILE, {}, tags=["auto-scheduled"]).json()["id"]
        end_as(served, quiet, "Unchanged")
        shown = browser.page.locator(f"a[href*='{quiet}']").first
        browser.open("/v2/runs", run["name"])
        shown.wait_for()
        # Playwright has the event loop of this thread.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(remove_quiet_reconciles, served).result()
        browser.open("/v2/runs", run["name"])
        shown.wait_for(state="detached")
        browser.picture("runs")

    def test_nothing_beyond_the_server_was_needed(self, browser: Browser) -> None:
        # The newer UI asks where to send its statistics, even where they are switched off.
        assert all("amplitude.com" in address for address in browser.outside)


def remove_quiet_reconciles(server: PrefectServer) -> None:
    """What each reconcile does, as if ten minutes had passed."""
    with temporary_settings(server.settings):
        asyncio.run(remove_quiet_runs(datetime.now(UTC) + timedelta(minutes=1)))


def open_form(
    browser: Browser, served: PrefectServer, name: str, ui: str = "/v2"
) -> dict[str, Any]:
    """Open the form of a deployment's run; the deployment."""
    deployment = served.deployment(name)
    schema = deployment["parameter_openapi_schema"]
    last = list(schema["properties"])[-1]
    optional = " (Optional)" * (last not in schema.get("required", ()))
    browser.open(f"{ui}/deployments/deployment/{deployment['id']}/run", "Run Name")
    browser.page.locator("label").get_by_text(f"{last}{optional}", exact=True).first.wait_for()
    return deployment


def assert_readable(browser: Browser, artifact: dict[str, Any], heading: str, tells: str) -> None:
    """An artifact is a page with a heading and tables; no line leaves its column."""
    browser.open(f"/v2/artifacts/artifact/{artifact['id']}", tells)
    if charts := artifact["data"].count("```mermaid"):
        browser.page.locator("svg[id^=mermaid-]").nth(charts - 1).wait_for()
    browser.picture(artifact["key"].partition("-")[0], height=2400)
    assert artifact["description"] in browser.text()
    assert heading in browser.page.locator("h1").all_inner_texts()[-1]
    assert browser.page.locator("table").count() > 0
    code = "".join(browser.page.locator("pre").all_inner_texts())
    assert browser.text().count('{"') == code.count('{"'), (
        "data stands only in what is to be copied"
    )
    assert SECRET not in browser.text()
    assert browser.page.evaluate(TOO_WIDE) == []
