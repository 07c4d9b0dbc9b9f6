"""Reads the ledger for Prometheus: past events only once, the present state at each request."""

import platform
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from prometheus_client import Metric, generate_latest
from prometheus_client.registry import Collector

from moorage.adapters.gateway.admin import Admin
from moorage.adapters.gateway.processes import GatewayProcesses
from moorage.adapters.ledger import Ledger
from moorage.adapters.ledger.activity_log import AT_ONCE
from moorage.common.failures import Cause, Failure
from moorage.gateway.gateway import Gateway
from moorage.operations.metrics.activity import RECORDED, Activity
from moorage.operations.metrics.present import Present, Serving
from moorage.operations.metrics.targets import Deployed, Group, deployed, target_groups
from moorage.reports.gateway_families import PATTERN, gateway_families
from moorage.reports.metric_families import Family, families

LATEST_RECORD = timedelta(hours=1)
"""How long to wait for the record of a deployed or failed release; a release whose flow was killed
gets none."""


class Exporter:
    """The metrics of one ledger. Only one thread may use it at a time.

    Args:
        ledger: The ledger, which is only read.
        home: The home of moorage, with the folders of this machine's gateways.
    """

    def __init__(self, ledger: Ledger, home: Path) -> None:
        self._ledger, self._home = ledger, home
        self._activity, self._last = Activity(), 0
        self._awaited: dict[str, datetime] = {}
        self._deployed: dict[str, Deployed] = {}

    def metrics(self) -> Iterable[Family]:
        """All metrics of the ledger."""
        now = datetime.now(UTC)
        self._count_transitions()
        self._count_records(now)
        return families(self._activity, self._present(now))

    def gateway_metrics(self, name: str) -> Iterable[Family]:
        """The metrics of a gateway of this machine.

        Raises:
            Failure: `BAD_SETTING` for an unknown name, `RUNTIME_UNAVAILABLE` when the gateway's
                Envoy does not answer.
        """
        own = next((one for one in self._own_gateways() if one.name == name), None)
        if own is None:
            raise Failure(Cause.BAD_SETTING, f"this machine has no gateway '{name}'")
        folder = GatewayProcesses(self._home, own.name, own.options).envoy.folder
        # Envoy's administration interface can also stop Envoy, so callers get only its statistics.
        return gateway_families(Admin(folder.admin()).statistics(PATTERN))

    def targets(self, exporter: str) -> list[Group]:
        """Serving engines and this machine's gateways, for Prometheus' `http_sd`.

        Args:
            exporter: Address at which this server serves the metrics of gateways.
        """
        serving = [one.deployed for one in self._serving()]
        return target_groups(serving, self._own_gateways(), exporter)

    def _count_transitions(self) -> None:
        """Count the transitions since the last call; the first call counts all."""
        while found := self._ledger.activity.transitions_after(self._last):
            for number, one in found:
                if self._activity.add_transition(one) in RECORDED:
                    self._awaited[one.release] = one.at
                self._last = number

    def _count_records(self, now: datetime) -> None:
        """Count the new records; most are written together with their transition."""
        awaited = list(self._awaited)
        for start in range(0, len(awaited), AT_ONCE):
            some = awaited[start : start + AT_ONCE]
            for release, outcome in self._ledger.activity.outcomes(some).items():
                self._activity.add_outcome(outcome)
                del self._awaited[release]
        fresh = now - LATEST_RECORD
        self._awaited = {one: at for one, at in self._awaited.items() if at > fresh}

    def _present(self, now: datetime) -> Present:
        ledger = self._ledger
        return Present(
            states=ledger.activity.states(),
            serving=self._serving(),
            claims=ledger.claims.all(),
            capacities=ledger.unseen_hosts.capacities(),
            unseen=frozenset(ledger.unseen_hosts.unseen()),
            reconciles=ledger.reconcile_counts.all(),
            gateways=ledger.gateways.all(),
            used=ledger.usage.since(f"{now:%Y-%m-%d}"),
        )

    def _serving(self) -> tuple[Serving, ...]:
        """Releases that serve now; each release's record is read only once."""
        states = self._ledger.activity.serving()
        self._deployed = {
            one: self._deployed.get(one) or deployed(self._ledger.releases.get(one))
            for one in states
        }
        return tuple(
            Serving(deployed=self._deployed[one], state=state) for one, state in states.items()
        )

    def _own_gateways(self) -> list[Gateway]:
        """Gateways of this machine whose Envoy also runs on it."""
        here = platform.node()
        every = self._ledger.gateways.all()
        return [one for one in every if one.machine == here and not one.options.host]


def written(families: Iterable[Family]) -> bytes:
    """Metrics in Prometheus' text format."""
    return generate_latest(_Collected(families))


class _Collected(Collector):
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        for one in self._families:
            metric = Metric(one.name, one.help, one.type)
            for sample in one.samples:
                metric.add_sample(sample.name, sample.labels, sample.value)
            yield metric
