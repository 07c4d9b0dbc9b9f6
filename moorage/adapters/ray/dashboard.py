"""The REST API of a Ray cluster's dashboard."""

from typing import Any

from moorage.adapters.engines.engine_http import Answer, NoAnswer, Question, ask_engine_now
from moorage.adapters.secrets import read_secrets
from moorage.common.failures import Cause, Failure
from moorage.common.printable import printable
from moorage.common.strict_json import JsonError, NotJson
from moorage.common.units import MIB
from moorage.engines.ray_serve import ReplicaLog
from moorage.inventory.access import parse_access

APPLICATIONS = "/api/serve/applications/"
ASK_SECONDS = 20.0
PUT_SECONDS = 120.0
"""Time limit: the first application of a cluster waits until Serve itself has started."""

SHOWN = 2000
MOST_BYTES = 8 * MIB
"""Most bytes of an answer; each node of a large cluster takes about a KiB."""

LOG_BYTES = 4 * MIB
OK, BAD_REQUEST = 200, 400
UNKNOWN = frozenset({404, 405, 501})
UNAUTHORIZED = frozenset({301, 302, 303, 307, 308, 401, 403})
"""Statuses from a dashboard that requires a token, or from a proxy with a login page."""


class RayDashboard:
    """One dashboard.

    Args:
        address: A line of `Access`. Its secret is read for each request and not stored.
    """

    def __init__(self, address: str) -> None:
        self._access = parse_access(address)

    def version(self) -> str:
        """Version of the cluster's Ray."""
        answer = self._json("/api/version")
        version = answer.get("ray_version") if isinstance(answer, dict) else None
        if not version:
            raise self._unsuitable("nothing there tells a version of Ray")
        return str(version)

    def details(self) -> dict[str, Any]:
        """Details of Serve and its applications."""
        answer = self._json(APPLICATIONS)
        found = answer.get("applications", {}) if isinstance(answer, dict) else None
        if not isinstance(found, dict) or not all(isinstance(x, dict) for x in found.values()):
            raise self._unsuitable(f"{APPLICATIONS} lists no applications")
        return dict(answer)

    def put(self, config: dict[str, Any]) -> None:
        """Replace the config of Serve; raises `LAUNCH_REFUSED` with Ray's message."""
        self._ask("PUT", APPLICATIONS, PUT_SECONDS, body=config)

    def nodes(self) -> list[dict[str, float]]:
        """Resources of each node that is alive."""
        parameters = {"detail": "true", "limit": "10000"}
        answer = self._json("/api/v0/nodes", parameters)
        try:
            nodes = answer["data"]["result"]["result"]
            return [dict(node["resources_total"]) for node in nodes if node["state"] == "ALIVE"]
        except (KeyError, TypeError, ValueError):
            raise self._unsuitable("/api/v0/nodes lists no nodes") from None

    def usage(self) -> dict[str, list[float]]:
        """Used and total amount by resource; empty until Ray has counted."""
        answer = self._json("/api/cluster_status")
        try:
            status = (answer.get("data") or {}).get("clusterStatus") or {}
            return dict((status.get("loadMetricsReport") or {}).get("usage") or {})
        except (AttributeError, TypeError, ValueError):
            raise self._unsuitable("/api/cluster_status tells no status") from None

    def log(self, log: ReplicaLog, lines: int) -> str:
        """The last lines of a replica's log."""
        parameters = {"node_id": log.node, "filename": log.file, "lines": str(lines)}
        return self._ask("GET", "/api/v0/logs/file", parameters=parameters, most=LOG_BYTES).text

    def _json(self, path: str, parameters: dict[str, str] | None = None) -> Any:
        answer = self._ask("GET", path, parameters=parameters)
        try:
            return answer.json()
        except NotJson:
            raise self._unsuitable(f"{path} answers no JSON; is it a dashboard of Ray?") from None
        except JsonError as error:
            raise self._unsuitable(f"{path}: the answer {error}") from None

    def _ask(
        self,
        method: str,
        path: str,
        seconds: float = ASK_SECONDS,
        *,
        body: Any = None,
        parameters: dict[str, str] | None = None,
        most: int = MOST_BYTES,
    ) -> Answer:
        url, name = self._access.address + path, self._access.token
        key = read_secrets([name])[name] if name else ""
        try:
            answer = ask_engine_now(Question(url, method, body, parameters, key), seconds, most)
        except NoAnswer as error:
            raise Failure(Cause.CLUSTER_UNAVAILABLE, f"{method} {url}: {error}") from None
        if answer.status != OK:
            raise self._refusal(method, path, answer)
        return answer

    def _refusal(self, method: str, path: str, answer: Answer) -> Failure:
        status, text = answer.status, printable(answer.text[:SHOWN].strip())
        detail = f"{method} {self._access.address}{path}: HTTP {status}: {text}"
        if status in UNAUTHORIZED:
            fix = "Check `token` of the cluster in the fleet file, and its secret."
            return Failure(Cause.HOST_UNAUTHORIZED, detail, suggestion=fix)
        if method == "PUT" and status == BAD_REQUEST:
            return Failure(Cause.LAUNCH_REFUSED, f"Ray Serve does not take the application: {text}")
        lacks = status in UNKNOWN
        return Failure(Cause.CLUSTER_UNSUITABLE if lacks else Cause.CLUSTER_UNAVAILABLE, detail)

    def _unsuitable(self, why: str) -> Failure:
        return Failure(Cause.CLUSTER_UNSUITABLE, f"{self._access.address}: {why}")
