"""What Prometheus scrapes: the engines that serve, and gateways, as its `http_sd` reads them.

https://prometheus.io/docs/prometheus/latest/http_sd/
"""

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from moorage.common.values import Value
from moorage.engines.api_key import key_secret
from moorage.engines.labels import LABEL_REPLICA
from moorage.engines.launch import LaunchPlan
from moorage.engines.registry import ENGINES
from moorage.gateway.gateway import Gateway
from moorage.placement.role import Role
from moorage.releases.release_row import ReleaseRow
from moorage.spec import EngineName

GATEWAY_PATH = "/gateways/"
"""Path of a gateway's metrics, before its name."""

Group = dict[str, Any]
"""Some targets and their labels."""


class EngineTarget(Value):
    """An engine that answers for a replica; `url` is that of its metrics, empty = it has none."""

    replica: str
    host: str
    url: str


class Deployed(Value):
    """What a release that serves is made of; it does not change.

    Attributes:
        engine: None = its record cannot be read.
        key_secret: Name of the secret with the API key that guards its engines' metrics; empty =
            everybody who reaches them may read them.
    """

    model: str
    release: str
    revision: str
    engine: EngineName | None = None
    engine_version: str = ""
    key_secret: str = ""
    targets: tuple[EngineTarget, ...] = ()


def deployed(row: ReleaseRow) -> Deployed:
    """The facts of a release."""
    found = Deployed(model=row.model, release=row.id, revision=row.revision)
    if row.plan is None:
        return found
    engine = ENGINES[row.plan.engine]
    guarded = engine.busy is not None and engine.busy.guarded
    facts = {
        "engine": row.plan.engine,
        "engine_version": row.plan.engine_version,
        "key_secret": key_secret(row.plan, engine.api_key_variable) if guarded else "",
        "targets": tuple(_engine_targets(row.plan)),
    }
    return found.model_copy(update=facts)


def _engine_targets(plan: LaunchPlan) -> Iterable[EngineTarget]:
    for container in plan.containers:
        if container.role == Role.LEADER:
            # Ray Serve has one address for all replicas, and metrics of its own.
            url = "" if container.application else ENGINES[plan.engine].metrics_url(container)
            replica = container.labels[LABEL_REPLICA]
            yield EngineTarget(replica=replica, host=container.host, url=url)


def target_groups(
    releases: Iterable[Deployed], gateways: Sequence[Gateway], exporter: str
) -> list[Group]:
    """All targets in groups of the same labels.

    Args:
        releases: Those that serve.
        gateways: Those whose numbers the exporter can read.
        exporter: Address of the exporter, which has them.
    """
    engines = [_engine_group(one, target) for one in releases for target in one.targets]
    return [*filter(None, engines), *(_gateway_group(one, exporter) for one in gateways)]


def _engine_group(one: Deployed, target: EngineTarget) -> Group:
    where = urlsplit(target.url)
    labels = {
        "__scheme__": where.scheme,
        "__metrics_path__": where.path,
        # Prometheus drops such labels, once its rules have chosen whom to scrape and how.
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
