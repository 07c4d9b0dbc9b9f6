"""Who may use the server that `moorage serve` starts: its user, and no other user, page or name."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Any

import httpx
import prefect
import psutil
import pytest
import websockets
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as NotShown

from moorage.gateway.gateway import Gateway, GatewayOptions
from tests.e2e.conftest import installed_engine
from tests.e2e.workplace import REPOSITORY, Workplace
from tests.flows.conftest import DEPLOYMENTS, Serving
from tests.flows.requests import NEVER_READY, Parameters, assert_undone, until_started
from tests.flows.ui.browser import WAIT_MS, chromium
from tests.http_server import QuietHandler, serving
from tests.prefect_server import PrefectApi, free_port
from tests.waiting import until

pytestmark = [pytest.mark.server, pytest.mark.process]

NOBODY = 65534
ANSWER_SECONDS = 60
"""How long the server may take; it shares the machine with other tests."""
EVIL = "evil.example"
OPEN = {("get", "/api/health"), ("get", "/api/ready")}
"""What anybody may ask: whether it is there."""

SOCKETS = (
    *("/events/in", "/events/out", "/logs/out", "/task_runs/subscriptions/scheduled"),
    "/work_pools/default/workers/connect",
)


class Served:
    """`moorage serve` with a server of its own.

    Attributes:
        place: Its home.
        serving: Its process.
        api: Its API, logged in.
        site: Where its pages are.
        metrics: Where its metrics are.
    """

    def __init__(self, place: Workplace, port: int, metrics_port: int, serving: Serving) -> None:
        self.place, self.port, self.serving, self.log = place, port, serving, serving.log
        self.metrics = f"http://127.0.0.1:{metrics_port}/metrics"
        self.login = (place.home / "api" / "login").read_text().strip()
        self.site = f"http://127.0.0.1:{port}"
        self.api = PrefectApi(f"{self.site}/api", self.login)
        until(lambda: all(map(self.api.has_deployment, DEPLOYMENTS)))
        self.deployment = self.api.deployment("deploy-model/deploy")["id"]
        self.path = f"/api/deployments/{self.deployment}/create_flow_run"

    def runs(self) -> list[Any]:
        """The runs that somebody has begun."""
        query = {"deployments": {"id": {"any_": [self.deployment]}}}
        found: list[Any] = self.api.post("/flow_runs/filter", query)
        return found

    def request(self, method: str = "GET", path: str = "", **headers: str) -> httpx.Response:
        """What somebody who has the login is answered."""
        user, _, password = self.login.partition(":")
        return httpx.request(
            method,
            f"{self.site}{path or '/api/admin/version'}",
            headers=headers,
            auth=(user, password),
            json={} if method == "POST" else None,
            timeout=ANSWER_SECONDS,
        )


@pytest.fixture(scope="module")
def served(tiny_llama: Path, lifecycle_program: Path) -> Iterator[Served]:
    folder = Path(tempfile.mkdtemp(prefix="moorage-login-"))
    folder.chmod(0o755)  # other users reach the home, as they do in most
    port = free_port()
    own = {"PREFECT_HOME": str(folder / "prefect"), "PREFECT_SERVER_API_PORT": str(port)}
    unset = dict.fromkeys(
        ("PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"), ""
    )
    place = Workplace(folder, tiny_llama, own | unset)
    place.environment = {name: value for name, value in place.environment.items() if value}
    installed_engine(place, lifecycle_program, "ok")
    exposed = GatewayOptions(bind="0.0.0.0")
    place.ledger.gateways.put(Gateway(name="main", machine="elsewhere", epoch=1, options=exposed))
    metrics_port = free_port()
    with Serving(place, "--metrics-port", str(metrics_port)) as serving:
        yield Served(place, port, metrics_port, serving)
    place.close()
    rmtree(folder)


def as_another_user(action: Callable[[], Any]) -> Any:
    """What an action comes to in a process of another user of this machine."""
    if os.getuid() != 0:
        pytest.skip("only root becomes another user")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            found = action()
        except Exception as error:
            found = type(error).__name__
        os.write(writing, json.dumps(found).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


class TestOtherUsers:
    def test_no_run_is_created_without_the_login(self, served: Served) -> None:
        def create() -> int:
            connection = http.client.HTTPConnection("127.0.0.1", served.port)
            body = json.dumps({"parameters": {"spec": {"name": "x", "source": "file:///etc"}}})
            connection.request("POST", served.path, body, {"Content-Type": "application/json"})
            return connection.getresponse().status

        assert as_another_user(create) == 401
        assert served.runs() == []

    @pytest.mark.parametrize("file", ["login", "server"])
    def test_the_login_is_not_read(self, served: Served, file: str) -> None:
        path = served.place.home / "api" / file
        assert as_another_user(path.read_text) == "PermissionError"
        path.parent.chmod(0o755)
        try:
            assert as_another_user(path.read_text) == "PermissionError"
        finally:
            path.parent.chmod(0o700)

    def test_it_is_in_no_command_line_and_no_log(self, served: Served) -> None:
        password = served.login.partition(":")[2]
        lines = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
        logs = [path.read_text(errors="replace") for path in served.place.home.rglob("*.log")]
        assert any(str(served.port) in line for line in lines)
        assert not any(password in text for text in (*lines, *logs, served.log.read_text()))
        assert "moorage serve --show-login" in served.log.read_text()

    def test_nothing_of_the_api_answers_who_has_no_login(self, served: Served) -> None:
        schema = httpx.get(f"{served.site}/openapi.json", timeout=ANSWER_SECONDS).json()["paths"]
        routes = [(method, path) for path, methods in schema.items() for method in methods]
        assert len(routes) > 150
        with httpx.Client(base_url=served.site) as client:
            answers = {
                (method, path): client.request(method, path.replace("{", "").replace("}", ""))
                for method, path in ((m, f"/api{p}") for m, p in routes)
            }
        admitted = {route for route, answer in answers.items() if answer.status_code != 401}
        assert admitted <= OPEN

    @pytest.mark.parametrize("path", SOCKETS)
    @pytest.mark.parametrize("subprotocols", [None, ["prefect"]])
    @pytest.mark.parametrize("first", [{"type": "auth"}, {"type": "auth", "token": "a:b"}, {}])
    def test_no_socket_does(
        self, served: Served, path: str, subprotocols: Any, first: dict[str, str]
    ) -> None:
        async def talk() -> str:
            url = f"ws://127.0.0.1:{served.port}/api{path}"
            try:
                async with websockets.connect(url, subprotocols=subprotocols) as socket:
                    await socket.send(json.dumps(first))
                    return str(await socket.recv())
            except (websockets.ConnectionClosed, websockets.InvalidStatus):
                return "closed"

        assert asyncio.run(talk()) == "closed"


class TestForeign:
    """With the login, as a browser has it: what a page of somebody else makes of it."""

    @pytest.mark.parametrize("host", [EVIL, f"{EVIL}:4200", f"127.0.0.1.{EVIL}", "0.0.0.0"])
    @pytest.mark.parametrize("path", ["/", "/ui-settings", "/api/admin/version"])
    def test_names_are_refused(self, served: Served, host: str, path: str) -> None:
        assert served.request(path=path, Host=host).status_code == 403

    @pytest.mark.parametrize("origin", [f"http://{EVIL}", "http://127.0.0.1:1", "null"])
    def test_origins_are_refused_and_allowed_nothing(self, served: Served, origin: str) -> None:
        wanted = {"Access-Control-Request-Method": "POST", "Origin": origin}
        wanted["Access-Control-Request-Headers"] = "authorization,content-type"
        for answer in (
            served.request("OPTIONS", served.path, **wanted),
            served.request("POST", served.path, Origin=origin),
            served.request(Origin=origin),
        ):
            assert answer.status_code == 403
            assert "access-control-allow-origin" not in answer.headers
        assert served.runs() == []

    def test_its_own_pages_are_not(self, served: Served) -> None:
        for host in ("127.0.0.1", "localhost"):
            origin = f"http://{host}:{served.port}"
            allowed = served.request(Origin=origin).headers["access-control-allow-origin"]
            assert allowed == origin

    @pytest.mark.parametrize("header", [{"Host": EVIL}, {"Origin": f"http://{EVIL}"}])
    def test_sockets_are_refused(self, served: Served, header: dict[str, str]) -> None:
        host = header.get("Host", f"127.0.0.1:{served.port}")
        lines = {"Host": host, "Upgrade": "websocket", "Connection": "Upgrade", **header}
        lines |= {"Sec-WebSocket-Protocol": "prefect", "Sec-WebSocket-Version": "13"}
        lines |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
        assert httpx.get(f"{served.site}/api/events/out", headers=lines).status_code == 403


class TestItsUser:
    def test_commands_need_no_other_step(self, served: Served) -> None:
        place = served.place
        place.environment["PREFECT_API_URL"] = f"http://localhost:{served.port}/api"
        place.run("reconcile")
        own = {"flow_runs": {"deployment_id": {"is_null_": True}}}
        assert [run["name"] for run in served.api.post("/flow_runs/filter", own)] == ["reconcile"]
        place.environment["PREFECT_API_URL"] = ""
        assert place.run("approvals").stdout.strip() == "No flow run waits for approval."
        place.environment["PREFECT_API_URL"] = f"{served.site}/api"
        assert place.json("approvals") == []

    def test_its_metrics_count_what_was_done_and_are_for_no_foreign_name(
        self, served: Served
    ) -> None:
        def runs() -> float:
            (found,) = re.findall(r"^moorage_reconcile_runs_total (\S+)$", text(), re.MULTILINE)
            return float(found)

        def text() -> str:
            return httpx.get(served.metrics).text

        before = runs()
        served.place.run("reconcile")
        assert runs() > before  # one more may run by the clock
        assert httpx.get(served.metrics, headers={"Host": EVIL}).status_code == 403

    def test_with_another_home_the_command_says_what_is_missing(
        self, served: Served, tmp_path: Path
    ) -> None:
        before = dict(served.place.environment)
        try:
            served.place.environment["MOORAGE_HOME"] = str(tmp_path)
            served.place.environment["PREFECT_API_URL"] = f"{served.site}/api"
            failed = served.place.run("reconcile", code=2)
        finally:
            served.place.environment = before
        assert "PREFECT_API_AUTH_STRING is not set" in failed.stderr

    def test_the_runs_that_are_asked_for_log_in_too(self, served: Served) -> None:
        done = served.api.run("plan-model/plan", {"spec": {"name": "x", "source": "file:///no"}})
        assert "The model was not found" in done["state"]["message"]

    def test_the_shell_of_the_documents_asks_with_the_login(self, served: Served) -> None:
        for page in ("README.md", "docs/prefect.md"):
            text = (REPOSITORY / page).read_text()
            (call,) = re.findall(r"^    (call\(\) \{.*\})", text, re.MULTILINE)
            lines = f'login=$(cat "$LOGIN")\n{call}\ncall "$API/admin/version"'
            variables = {"LOGIN": str(served.place.home / "api" / "login"), "API": served.api.url}
            done = subprocess.run(
                ["bash", "-c", lines],
                env={**os.environ, **variables},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.stdout == f'"{prefect.__version__}"', done.stderr


class ForeignPage(QuietHandler):
    """A page of somebody else."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>look at this</p>")


ATTACK = """async ([url, login, socket]) => {
    const body = '{"parameters": {"spec": {"name": "x", "source": "file:///etc"}}}'
    const kinds = {
        simple: {mode: "no-cors", headers: {"Content-Type": "text/plain"}},
        json: {headers: {"Content-Type": "application/json"}},
        cookies: {mode: "no-cors", credentials: "include"},
        login: {headers: {Authorization: `Basic ${btoa(login)}`}},
    }
    const found = {}
    for (const [name, kind] of Object.entries(kinds))
        found[name] = await fetch(url, {method: "POST", body, ...kind})
            .then(answer => answer.status, () => "refused")
    found.socket = await new Promise(done => {
        const opened = new WebSocket(socket, "prefect")
        opened.onopen = () => done("open")
        opened.onerror = () => done("refused")
    })
    return found
}"""


@pytest.fixture(scope="class")
def browser() -> Iterator[Browser]:
    with chromium(f"--host-resolver-rules=MAP {EVIL} 127.0.0.1") as found:
        yield found


@pytest.fixture(scope="class")
def page(browser: Browser, served: Served) -> Page:
    """A page in which the user has signed in, as the server says."""
    page = browser.new_context().new_page()
    page.set_default_timeout(WAIT_MS)
    password = page.locator("input[type=password]")
    for _ in range(4):  # seldom Prefect's page stays empty until it is loaded again
        page.goto(served.site)
        with suppress(NotShown):
            password.wait_for(timeout=WAIT_MS / 4)
            break
    password.fill(served.login)
    page.get_by_role("button", name="Login").click()
    page.get_by_text("Flow Runs").first.wait_for()
    return page


@pytest.mark.ui
class TestBrowser:
    def test_the_pages_work_after_signing_in(self, page: Page, served: Served) -> None:
        page.goto(f"{served.site}/v2/deployments?limit=25")
        page.get_by_text("site-a").first.wait_for()

    @pytest.mark.parametrize("name", ["127.0.0.1", "localhost", EVIL])
    def test_a_page_of_another_origin_makes_no_run(
        self, page: Page, served: Served, name: str
    ) -> None:
        target = f"{name}:{served.port}"
        socket = f"ws://{target}/api/events/in"
        with serving(ForeignPage) as port:
            other = page.context.new_page()
            other.goto(f"http://{name}:{port}/")
            found = other.evaluate(ATTACK, [f"http://{target}{served.path}", served.login, socket])
            other.close()
        # What a page may not read has no status.
        assert found == {
            **{"simple": 0, "cookies": 0, "json": "refused", "login": "refused"},
            "socket": "refused",
        }
        assert served.runs() == []

    def test_a_name_that_was_rebound_shows_nothing(self, page: Page, served: Served) -> None:
        other = page.context.new_page()
        answer = other.goto(f"http://{EVIL}:{served.port}/")
        assert answer
        assert answer.status == 403
        found = other.evaluate(
            ATTACK, [served.path, served.login, f"ws://{EVIL}:{served.port}/api/events/in"]
        )
        assert {found[kind] for kind in ("json", "login")} == {403}
        assert found["socket"] == "refused"
        assert served.runs() == []

    def test_a_page_of_another_origin_does_not_show_it(self, page: Page, served: Served) -> None:
        with serving(ForeignPage) as port:
            other = page.context.new_page()
            other.goto(f"http://127.0.0.1:{port}/")
            other.evaluate(
                "url => { const f = document.createElement('iframe'); f.src = url;"
                " document.body.append(f); return new Promise(done => f.onload = done) }",
                f"{served.site}/v2/",
            )
            assert "Login" not in other.frames[-1].content()
            assert "Prefect" not in other.frames[-1].content()


def test_it_ends_everything_with_it(served: Served) -> None:
    """The last test: nothing is served afterwards."""
    assert "models http://elsewhere:4000/v1" in served.log.read_text()
    parameters = Parameters(served.place)("ended", engine=NEVER_READY)
    created = served.api.ask("deploy-model/deploy", parameters)
    assert created.status_code == 201
    until_started(served.place, "ended")

    assert served.serving.stop(signal.SIGTERM) == 0, served.log.read_text()
    assert_undone(served.place, "ended")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", served.port))
