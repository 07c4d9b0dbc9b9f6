"""The REST API of a Ray cluster's dashboard."""

from __future__ import annotations

from typing import Any

import httpx

from moorage.adapters.secrets import read_secrets
from moorage.cluster import parse_cluster_access
from moorage.failures import Cause, Failure
from moorage.ray_serve import ReplicaLog

APPLICATIONS = "/api/serve/applications/"
ASK_SECONDS = 20.0
PUT_SECONDS = 120.0
"""The first application of a cluster waits for Serve itself to start."""

MOST_NODES = 10_000
SHOWN = 2000
UNAUTHORIZED = frozenset({301, 302, 303, 307, 308, 401, 403})
"""A dashboard that wants a token says so; a proxy in front of it may send to its login page."""


class RayDashboard:
    """One dashboard.

    Args:
        address: A line of `ClusterAccess`. Its secret is read with each question and kept nowhere.
    """

    def __init__(self, address: str) -> None:
        self._access = parse_cluster_access(address)

    def version(self) -> str:
        """The version of its Ray."""
        answer = self._json("GET", "/api/version")
        version = answer.get("ray_version") if isinstance(answer, dict) else None
        if not version:
            raise self._unsuitable("nothing there tells a version of Ray")
        return str(version)

    def details(self) -> dict[str, Any]:
        """Everything about Serve and its applications."""
        return dict(self._json("GET", APPLICATIONS))

    def put(self, config: dict[str, Any]) -> None:
        """Replace the whole config of Serve.

        Raises:
            Failure: `LAUNCH_REFUSED` with Ray's own words.
        """
        self._ask("PUT", APPLICATIONS, PUT_SECONDS, json=config)

    def nodes(self) -> list[dict[str, float]]:
        """The resources of each node that is alive."""
        asked = {"detail": "true", "limit": str(MOST_NODES)}
        answer = self._json("GET", "/api/v0/nodes", params=asked)
        nodes = answer["data"]["result"]["result"]
        return [node["resources_total"] for node in nodes if node.get("state") == "ALIVE"]

    def usage(self) -> dict[str, list[float]]:
        """By resource, what is held and what there is; empty until Ray has counted."""
        answer = self._json("GET", "/api/cluster_status")
        status = (answer.get("data") or {}).get("clusterStatus") or {}
        return dict((status.get("loadMetricsReport") or {}).get("usage") or {})

    def log(self, log: ReplicaLog, lines: int) -> str:
        """The last lines of a replica's log."""
        asked = {"node_id": log.node, "filename": log.file, "lines": str(lines)}
        return self._ask("GET", "/api/v0/logs/file", params=asked).text

    def _json(self, method: str, path: str, **more: Any) -> Any:
        response = self._ask(method, path, **more)
        try:
            return response.json()
        except ValueError:
            raise self._unsuitable(f"{path} answers no JSON; is it a dashboard of Ray?") from None

    def _ask(
        self, method: str, path: str, seconds: float = ASK_SECONDS, **more: Any
    ) -> httpx.Response:
        url = self._access.dashboard + path
        try:
            with httpx.Client(timeout=seconds, trust_env=False, headers=self._headers()) as client:
                response = client.request(method, url, **more)
        except httpx.TransportError as error:
            told = str(error) or type(error).__name__
            raise Failure(Cause.CLUSTER_UNAVAILABLE, f"{method} {url}: {told}") from None
        if response.status_code != httpx.codes.OK:
            raise self._refusal(method, path, response)
        return response

    def _headers(self) -> dict[str, str]:
        name = self._access.token
        return {"Authorization": f"Bearer {read_secrets([name])[name]}"} if name else {}

    def _refusal(self, method: str, path: str, response: httpx.Response) -> Failure:
        status, text = response.status_code, response.text[:SHOWN].strip()
        told = f"{method} {self._access.dashboard}{path}: HTTP {status}: {text}"
        if status in UNAUTHORIZED:
            return Failure(
                Cause.HOST_UNAUTHORIZED,
                told,
                suggestion="Check `token` of the cluster in the fleet file, and its secret.",
            )
        if method == "PUT" and status == httpx.codes.BAD_REQUEST:
            return Failure(Cause.LAUNCH_REFUSED, f"Ray Serve does not take the application: {text}")
        if status in (httpx.codes.NOT_FOUND, httpx.codes.NOT_IMPLEMENTED, 405):
            return Failure(Cause.CLUSTER_UNSUITABLE, told)
        return Failure(Cause.CLUSTER_UNAVAILABLE, told)

    def _unsuitable(self, why: str) -> Failure:
        return Failure(Cause.CLUSTER_UNSUITABLE, f"{self._access.dashboard}: {why}")
