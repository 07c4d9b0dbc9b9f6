"""Envoy's administration interface, which only Envoy's user can reach."""

import time
from typing import Any

import httpx

from moorage.common.failures import Cause, Failure
from moorage.common.strict_json import JsonError, decode
from moorage.common.units import MIB, human_bytes
from moorage.gateway.envoy import CLUSTERS_FILE, LISTENERS_FILE, ROUTES, ROUTES_FILE
from moorage.gateway.idleness import Traffic

ANSWER_SECONDS = 2.0
"""Limit for each read of an answer."""

WHOLE_SECONDS = 10.0
"""Limit for a whole answer: a compromised Envoy must not block the service."""

MOST_BYTES = 64 * MIB
TAKE_SECONDS = 5.0
"""How long Envoy may take to load a file; it needs a few milliseconds."""

POLL_SECONDS = 0.005

STATISTICS = {
    CLUSTERS_FILE: "cluster_manager.cds",
    ROUTES_FILE: f"http.gateway.rds.{ROUTES}",
    LISTENERS_FILE: "listener_manager.lds",
}
"""Prefix of the statistics about each configuration file."""


class Admin:
    """Client of one Envoy's administration interface.

    Args:
        transport: Connects to it; `EnvoyFolder.admin` gives one.
    """

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._http = httpx.Client(
            transport=transport, base_url="http://envoy", timeout=ANSWER_SECONDS, trust_env=False
        )

    def is_ready(self) -> bool:
        """Whether Envoy has loaded its configuration and accepts requests."""
        try:
            return self._ask("GET", "/ready")[0] == httpx.codes.OK
        except (httpx.HTTPError, Failure):
            return False

    def rejections(self, file: str) -> int:
        """How often Envoy has rejected a configuration file so far."""
        return self._number(f"{STATISTICS[file]}.update_rejected")

    def await_version(self, file: str, version: str, rejections: int) -> None:
        """Wait until Envoy uses a version of a configuration file.

        Args:
            rejections: `rejections` of the file before this version was written.

        Raises:
            Failure: `GATEWAY_REFUSED` when Envoy rejects the version or does not load it in time.
        """
        prefix = STATISTICS[file]
        give_up = time.monotonic() + TAKE_SECONDS
        while True:
            found = self.statistics(f"^{prefix}\\.(version_text|update_rejected)$")
            if found.get(f"{prefix}.version_text") == version:
                return
            if int(found.get(f"{prefix}.update_rejected", 0)) > rejections:
                raise Failure(Cause.GATEWAY_REFUSED, f"Envoy rejects version {version} of {file}")
            if time.monotonic() > give_up:
                detail = f"Envoy did not take version {version} of {file} within {TAKE_SECONDS:g} s"
                raise Failure(Cause.GATEWAY_REFUSED, detail)
            time.sleep(POLL_SECONDS)

    def active_requests(self) -> dict[str, int]:
        """Requests in flight by release."""
        return {release: found.active for release, found in self.traffic().items()}

    def traffic(self) -> dict[str, Traffic]:
        """Requests in total and in flight, by release."""
        found = self.statistics(r"^cluster\..*\.upstream_rq_(active|pending_active|total)$")
        releases = {name.split(".", 1)[1].rsplit(".", 1)[0] for name in found}
        return {
            release: Traffic(
                total=int(found.get(f"cluster.{release}.upstream_rq_total", 0)),
                active=sum(
                    int(found.get(f"cluster.{release}.upstream_rq_{kind}", 0))
                    for kind in ("active", "pending_active")
                ),
            )
            for release in releases
        }

    def stop_listening(self) -> None:
        """Accept no new connections; open ones end with their present request."""
        self._post("/healthcheck/fail")  # else kept connections would bring further requests
        self._post("/drain_listeners?graceful")

    def open_requests(self) -> int:
        """Number of callers' requests in flight."""
        return self._number("http.gateway.downstream_rq_active")

    def reopen_log(self) -> None:
        """Make Envoy open a new access log, after the old file was renamed."""
        self._post("/reopen_logs")

    def statistics(self, pattern: str) -> dict[str, Any]:
        """Values of the statistics whose name matches a regular expression, by name."""
        try:
            _, content = self._ask("GET", "/stats", filter=pattern, format="json")
            listed = decode(content)["stats"]
        except (httpx.HTTPError, JsonError) as error:
            raise _silent(error) from error
        return {one["name"]: one["value"] for one in listed if "name" in one}

    def _post(self, path: str) -> None:
        try:
            self._ask("POST", path)
        except httpx.HTTPError as error:
            raise _silent(error) from error

    def _ask(self, method: str, path: str, **params: str) -> tuple[int, bytes]:
        """Status and body of an answer, limited in size and time."""
        give_up, content = time.monotonic() + WHOLE_SECONDS, bytearray()
        with self._http.stream(method, path, params=params) as answer:
            for piece in answer.iter_raw():
                content += piece
                if len(content) > MOST_BYTES:
                    raise _silent(f"its answer has more than {human_bytes(MOST_BYTES)}")
                if time.monotonic() > give_up:
                    raise _silent(f"its answer takes more than {WHOLE_SECONDS:g} s")
            return answer.status_code, bytes(content)

    def _number(self, name: str) -> int:
        return int(self.statistics(f"^{name.replace('.', chr(92) + '.')}$").get(name, 0))


def _silent(error: Exception | str) -> Failure:
    return Failure(Cause.RUNTIME_UNAVAILABLE, f"Envoy does not answer: {error}")
