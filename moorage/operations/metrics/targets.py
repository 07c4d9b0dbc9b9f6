"""Scrape targets for Prometheus: serving engines and gateways, in the format of its `http_sd`.

https://prometheus.io/docs/prometheus/latest/http_sd/
"""

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from moorage.common.values import Value
from moorage.engines.engine_secrets import metrics_secret
from moorage.engines.labels import LABEL_REPLICA
from moorage.engines.launch import LaunchPlan
from moorage.engines.registry import ENGINES
from moorage.gateway.gateway import Gateway
from moorage.placement.role import Role
from moorage.releases.release_row import ReleaseRow
from moorage.spec import EngineName

GATEWAY_PATH = "/gateways/"
"""Path of gateways' metrics, without the gateway's name."""

Group = dict[str, Any]
"""Targets with the same labels, and these labels."""


class EngineTarget(Value):
    """The leading engine of a replica; `url` is that of its metrics, empty = no metrics."""

    replica: str
    host: str
    url: str


class Deployed(Value):
    """The unchanging facts of a serving release.

    Attributes:
        engine: None = its record cannot be read.
        key_secret: Name of the secret with the API key that its engines' metrics require; empty =
            they require none.
    """

    model: str
    release: str
    revision: str
    engine: EngineName | None = None
    engine_version: str = ""
    key_secret: str = ""
    targets: tuple[EngineTarget, ...] = ()


def deployed(row: ReleaseRow) -> Deployed:
    """The facts of a release, from its plan."""
    found = Deployed(model=row.model, release=row.id, revision=row.revision)
    if row.plan is None:
        return found
    facts = {
        "engine": row.plan.engine,
        "engine_version": row.plan.engine_version,
        "key_secret": metrics_secret(row.plan),
        "targets": tuple(_engine_targets(row.plan)),
    }
    return found.model_copy(update=facts)


def _engine_targets(plan: LaunchPlan) -> Iterable[EngineTarget]:
    for container in plan.containers:
        if container.role == Role.LEADER:
            # Ray Serve has one address for all replicas, and its own metrics.
            url = "" if container.application else ENGINES[plan.engine].metrics_url(container)
            replica = container.labels[LABEL_REPLICA]
            yield EngineTarget(replica=replica, host=container.host, url=url)


def target_groups(
    releases: Iterable[Deployed], gateways: Sequence[Gateway], exporter: str
) -> list[Group]:
    """All targets in groups of the same labels; the exporter serves the gateways' metrics."""
    engines = [_engine_group(one, target) for one in releases for target in one.targets]
    return [*filter(None, engines), *(_gateway_group(one, exporter) for one in gateways)]


def _engine_group(one: Deployed, target: EngineTarget) -> Group:
    where = urlsplit(target.url)
    labels = {
        "__scheme__": where.scheme,
        "__metrics_path__": where.path,
        # Prometheus drops `__` labels after its relabelling rules have used them.
        "__meta_moorage_kind": "engine",
        "__meta_moorage_key_secret": one.key_secret,
        "model": one.model,
        "release": one.release,
        "replica": target.replica,
        "host": target.host,
        "engine": str(one.engine),
    }
    return {"targets": [where.netloc], "labels": labels} if target.url else {}


def _gateway_group(gateway: Gateway, exporter: str) -> Group:
    options = gateway.options
    labels = {
        "__metrics_path__": f"{GATEWAY_PATH}{gateway.name}",
        "__meta_moorage_kind": "gateway",
        "gateway": gateway.name,
        "host": options.host.name if options.host else gateway.machine,
    }
    return {"targets": [exporter], "labels": labels}
