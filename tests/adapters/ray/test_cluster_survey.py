"""A dashboard with scripted answers; `tests/e2e/test_ray.py` asks a real one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from moorage.adapters.ray.dashboard import RayDashboard
from moorage.common.failures import Cause, Failure

TOKEN = "a-token-of-more-than-thirty-two-letters"


class Dashboard:
    """Answers every question with one status and text, and remembers the last one."""

    def __init__(self) -> None:
        self.status, self.text = 200, "{}"
        self.headers: dict[str, str] = {}
        this = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                this.headers = dict(self.headers)
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = this.text.encode()
                self.send_response(this.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_PUT = do_GET

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def dashboard() -> Iterator[Dashboard]:
    served = Dashboard()
    yield served
    served.close()


@pytest.mark.parametrize(
    ("status", "text", "cause"),
    [
        (401, "Unauthorized", Cause.HOST_UNAUTHORIZED),
        (302, "", Cause.HOST_UNAUTHORIZED),
        (404, "Not Found", Cause.CLUSTER_UNSUITABLE),
        (501, "Serve dependencies are not installed.", Cause.CLUSTER_UNSUITABLE),
        (503, "The GCS may be down", Cause.CLUSTER_UNAVAILABLE),
        (500, "Internal error", Cause.CLUSTER_UNAVAILABLE),
        (400, "odd", Cause.CLUSTER_UNAVAILABLE),
        (200, "<html>a login page</html>", Cause.CLUSTER_UNSUITABLE),
    ],
)
def test_an_answer_that_is_none_is_told_with_its_own_words(
    dashboard: Dashboard, status: int, text: str, cause: Cause
) -> None:
    dashboard.status, dashboard.text = status, text
    with pytest.raises(Failure) as raised:
        RayDashboard(dashboard.url).details()
    assert raised.value.cause == cause
    assert dashboard.url in raised.value.detail
    assert status == 200 or text in raised.value.detail


def test_a_config_that_ray_refuses_is_told_in_its_words(dashboard: Dashboard) -> None:
    dashboard.status, dashboard.text = 400, "1 validation error for ServeDeploySchema"
    with pytest.raises(Failure, match="1 validation error") as raised:
        RayDashboard(dashboard.url).put({"applications": []})
    assert raised.value.cause == Cause.LAUNCH_REFUSED


def test_what_tells_no_version_is_no_ray(dashboard: Dashboard) -> None:
    with pytest.raises(Failure) as raised:
        RayDashboard(dashboard.url).version()
    assert raised.value.cause == Cause.CLUSTER_UNSUITABLE


def test_nobody_there_is_a_cluster_that_does_not_answer(dashboard: Dashboard) -> None:
    dashboard.close()
    with pytest.raises(Failure, match="Connection refused") as raised:
        RayDashboard(dashboard.url).version()
    assert raised.value.cause == Cause.CLUSTER_UNAVAILABLE


def test_the_token_is_sent_and_no_browser_is_played(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray hides variables from browsers; sent back, they would be lost."""
    monkeypatch.setenv("RAY_TOKEN", TOKEN)
    dashboard.text = json.dumps({"ray_version": "2.60.0"})
    assert RayDashboard(f"{dashboard.url}?token=RAY_TOKEN").version() == "2.60.0"
    assert dashboard.headers["Authorization"] == f"Bearer {TOKEN}"
    assert not dashboard.headers["User-Agent"].startswith("Mozilla")
