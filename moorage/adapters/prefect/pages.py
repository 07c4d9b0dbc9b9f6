"""Addresses of Prefect's pages, built without importing Prefect, because commands print them."""

import json
import os
from typing import Any
from urllib.parse import quote

API, NEW_PAGES = "/api", "/v2"


def pages_of(api: str) -> str:
    """The base address of a server's pages, without a slash at the end; empty without a server.

    `PREFECT_UI_URL` if it is set, else the newer pages, which a server shows first. A server
    without the newer pages redirects their addresses to the older ones.
    """
    if named := os.environ.get("PREFECT_UI_URL"):
        return named.rstrip("/")
    base = api.rstrip("/")
    return base.removesuffix(API) + NEW_PAGES if base.endswith(API) else base


def run_page(api: str, flow_run: str) -> str:
    """The page of a flow run; empty without a server or a run."""
    pages = pages_of(api)
    return f"{pages}/runs/flow-run/{flow_run}" if pages and flow_run else ""


def record_page(api: str, key: str) -> str:
    """The page of the newest artifact of a key."""
    return f"{pages_of(api)}/artifacts/key/{key}"


def form_page(api: str, deployment: str, parameters: dict[str, Any]) -> str:
    """The form of a run of a deployment, with some fields filled in."""
    filled = quote(json.dumps(parameters, separators=(",", ":")), safe="")
    return f"{pages_of(api)}/deployments/deployment/{deployment}/run?parameters={filled}"
