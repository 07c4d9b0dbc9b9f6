"""Reading and writing the documents of Ray Serve's REST API.

`PUT /api/serve/applications/` replaces the whole config of a cluster, so changing one application
requires sending all others too. Verified with Ray 2.60; the documents have had this shape since
`source` was added (2.40).
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.values import Value

MARK_LEDGER, MARK_RELEASE = "MOORAGE_LEDGER", "MOORAGE_RELEASE"
"""Variables that mark an application's ledger and release, as Ray applications have no labels."""

WHOLE = ("proxy_location", "http_options", "grpc_options", "target_capacity")
"""Settings of the config in addition to applications. Ray resets settings that are left out."""

IMPERATIVE = "imperative"
"""Source of applications made by `serve.run`: no config holds them, and a PUT keeps them."""

REDACTED = "<redacted>"
"""The text that replaces variables if the dashboard takes the client for a browser."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_OPENING = re.compile(r"^\S*(?:Error|Exception)\b.*: Traceback \(most recent call last\):$")
"""First line of an error that only repeats the traceback of another error."""


class AppStatus(StrEnum):
    """Statuses of an application, as Ray Serve names them."""

    NOT_STARTED = "NOT_STARTED"
    DEPLOYING = "DEPLOYING"
    DEPLOY_FAILED = "DEPLOY_FAILED"
    RUNNING = "RUNNING"
    UNHEALTHY = "UNHEALTHY"
    DELETING = "DELETING"


class ReplicaLog(Value):
    """Location of a replica's log: a file in Ray's log folder on a node."""

    node: str
    file: str


class AppState(Value):
    """An application as the cluster sees it.

    Attributes:
        status: Unknown statuses count as deploying.
        message: The cluster's messages about it and its deployments, without colours.
        ledger: Ledger that it belongs to; empty = moorage did not start it.
    """

    status: AppStatus
    message: str = ""
    ledger: str = ""
    release: str = ""
    logs: tuple[ReplicaLog, ...] = ()


def app_state(details: Mapping[str, Any], name: str) -> AppState | None:
    """The state of one application; None = the cluster does not have it.

    `details` is the answer of `GET /api/serve/applications/`.
    """
    found = details.get("applications", {}).get(name)
    if found is None:
        return None
    deployments: Mapping[str, Any] = found.get("deployments") or {}
    messages = [
        found.get("message", ""),
        *(_deployment_message(*item) for item in deployments.items()),
    ]
    environment = (found.get("deployed_app_config") or {}).get("runtime_env") or {}
    marks, status = environment.get("env_vars") or {}, found.get("status", "")
    return AppState(
        status=status if status in set(AppStatus) else AppStatus.DEPLOYING,
        message=_plain("\n".join(filter(None, messages))),
        ledger=marks.get(MARK_LEDGER, ""),
        release=marks.get(MARK_RELEASE, ""),
        logs=tuple(log for each in deployments.values() for log in _logs(each)),
    )


def with_application(details: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The cluster's config with an application added or replaced; `details` as for `app_state`.

    Raises:
        Failure: `LAUNCH_REFUSED` when another application would be altered.
    """
    whole = without_application(details, str(config["name"]))
    for other in whole["applications"]:
        if other.get("route_prefix", "/") == config["route_prefix"]:
            detail = f"{other['name']} has the route {config['route_prefix']} already"
            raise Failure(Cause.LAUNCH_REFUSED, detail)
    return {**whole, "applications": [*whole["applications"], dict(config)]}


def without_application(details: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The cluster's config without one application, all others unchanged.

    Raises:
        Failure: As in `with_application`.
    """
    applications: Mapping[str, Any] = details.get("applications", {})
    kept = [_config(other, app) for other, app in applications.items() if other != name]
    whole = {key: details[key] for key in WHOLE if details.get(key) is not None}
    return {**whole, "applications": [config for config in kept if config is not None]}


def _config(name: str, application: Mapping[str, Any]) -> dict[str, Any] | None:
    """The config with which an application was deployed; None = it must not be sent.

    Sending an application that is being deleted would restore it; `serve.run`'s have no config.
    """
    if application.get("status") == AppStatus.DELETING:
        return None
    config: dict[str, Any] | None = application.get("deployed_app_config")
    if config is None:
        if str(application.get("source", "")).lower() == IMPERATIVE:
            return None
        detail = f"the cluster does not tell the config of its application {name}"
        raise Failure(Cause.LAUNCH_REFUSED, detail)
    if REDACTED in str(config):
        detail = f"the dashboard hides variables of {name}, which a change would lose"
        raise Failure(Cause.LAUNCH_REFUSED, detail)
    # Both belong to the whole config; older Rays also list them here, but refuse them in a PUT.
    return {key: value for key, value in config.items() if key not in ("host", "port")}


def _deployment_message(name: str, deployment: Mapping[str, Any]) -> str:
    message = deployment.get("message", "")
    return f"{name} is {deployment.get('status', '')}: {message}" if message else ""


def _logs(deployment: Mapping[str, Any]) -> list[ReplicaLog]:
    return [
        ReplicaLog(node=replica["node_id"], file=replica["log_file_path"].lstrip("/"))
        for replica in deployment.get("replicas", ())
        if replica.get("node_id") and replica.get("log_file_path")
    ]


def _plain(text: str) -> str:
    lines = _COLOURS.sub("", text).splitlines()
    return "\n".join(line for line in lines if not _OPENING.match(line))
