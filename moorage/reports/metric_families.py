"""Metrics of the ledger as families of samples.

Each counter has a series from 0 for every known label: a rate misses events before its series
began.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from moorage.common.failures import Cause
from moorage.common.refusal import Reason
from moorage.common.values import Value
from moorage.operations.metrics.activity import BUCKETS, Activity, Durations
from moorage.operations.metrics.present import (
    Present,
    Serving,
    capacity_bytes,
    claimed_bytes,
    hosts_in_use,
    used_by_model,
)
from moorage.operations.reconcile.actions import ActionKind
from moorage.operations.reconcile.counts import RUN, ReconcileCount
from moorage.releases.states import ReleaseState

Values = Mapping[Any, float]
"""Values by tuples of label values."""


class Sample(Value):
    """A number with a name and labels."""

    name: str
    labels: dict[str, str]
    value: float


class Family(Value):
    """A metric in Prometheus' sense: samples of one kind, with a type and a help text."""

    name: str
    type: Literal["gauge", "counter", "histogram"]
    help: str
    samples: tuple[Sample, ...]


def families(activity: Activity, present: Present) -> Iterator[Family]:
    """All metrics: of releases, hosts, reconciling, gateways and requests."""
    yield from _of_releases(present)
    yield from _of_activity(activity)
    yield from _of_hosts(present)
    yield from _of_reconciles(present.reconciles)
    yield from _of_requests(present)


def gauge(name: str, text: str, labels: Sequence[str], values: Values) -> Family:
    """A family of values that rise and fall."""
    name = f"moorage_{name}"
    samples = _samples(name, labels, _sorted(values))
    return Family(name=name, type="gauge", help=text, samples=samples)


def counter(name: str, text: str, labels: Sequence[str], values: Values) -> Family:
    """A family of values that only grow; its samples end with `_total`."""
    name = f"moorage_{name}"
    samples = _samples(f"{name}_total", labels, _sorted(values))
    return Family(name=name, type="counter", help=text, samples=samples)


def _samples(name: str, labels: Sequence[str], values: Values) -> tuple[Sample, ...]:
    return tuple(
        Sample(name=name, labels=dict(zip(labels, map(str, own), strict=True)), value=value)
        for own, value in values.items()
    )


def _sorted(values: Values) -> Values:
    return dict(sorted(values.items()))


def _of_releases(present: Present) -> Iterator[Family]:
    states = {(state,): present.states.get(state, 0) for state in ReleaseState}
    yield gauge("releases", "Releases by state.", ["state"], states)
    serving, named = present.serving, ("model", "release")
    up = {_names(one): one.state == ReleaseState.RUNNING for one in serving}
    text = "Whether the release that serves a model can be reached; 0 = its host does not answer."
    yield gauge("model_up", text, named, up)
    replicas = {_names(one): len(one.deployed.targets) for one in serving}
    yield gauge("model_replicas", "Replicas of a model, as planned.", named, replicas)
    labels = (*named, "engine", "engine_version", "revision")
    info = {(*_names(one), *_facts(one)): 1 for one in serving}
    yield gauge("model_info", "What serves a model.", labels, info)


def _names(one: Serving) -> tuple[str, str]:
    return one.deployed.model, one.deployed.release


def _facts(one: Serving) -> tuple[str, str, str]:
    own = one.deployed
    return own.engine or "", own.engine_version, own.revision


def _of_activity(activity: Activity) -> Iterator[Family]:
    text = "What happened to a model: it was deployed, a deploy failed, it was lost, slept, woke."
    yield counter("model_events", text, ["model", "event"], activity.events)
    yield _durations(activity.phases)
    text = "Seconds in which nobody served a model while it was replaced."
    downtime = {(model,): seconds for model, seconds in activity.downtime.items()}
    yield counter("downtime_seconds", text, ["model"], downtime)
    causes = {(cause,): activity.causes[cause] for cause in Cause}
    yield counter("failures", "Failed releases by cause.", ["cause"], causes)
    text = "Hosts that were not taken when a release was placed, by reason."
    reasons = {(reason,): activity.refusals[reason] for reason in Reason}
    yield counter("refusals", text, ["reason"], reasons)


def _durations(durations: Mapping[str, Durations]) -> Family:
    phases = sorted(durations.items())
    name = "moorage_phase_duration_seconds"
    bounds = [*map(str, BUCKETS[:-1]), "+Inf"]
    counts = {
        (phase, bound): count
        for phase, one in phases
        for bound, count in zip(bounds, one.cumulative, strict=True)
    }
    totals = {(phase,): one.cumulative[-1] for phase, one in phases}
    sums = {(phase,): one.sum for phase, one in phases}
    return Family(
        name=name,
        type="histogram",
        help="How long the phases of deploys took; `wake` is the start of a model that slept.",
        samples=(
            *_samples(f"{name}_bucket", ("phase", "le"), counts),
            *_samples(f"{name}_count", ("phase",), totals),
            *_samples(f"{name}_sum", ("phase",), sums),
        ),
    )


def _of_hosts(present: Present) -> Iterator[Family]:
    labels = ("host", "resource", "index")
    capacity = capacity_bytes(present.capacities)
    claimed = claimed_bytes(present.claims, capacity)
    text = "Memory that can be claimed on a host, as of its last claim."
    yield gauge("capacity_bytes", text, labels, capacity)
    yield gauge("claimed_bytes", "Memory that releases claim.", labels, claimed)
    up = {(host,): host not in present.unseen for host in hosts_in_use(present.claims)}
    text = "Whether a host with claims answered when it was asked last."
    yield gauge("host_up", text, ["host"], up)


def _of_reconciles(counts: Sequence[ReconcileCount]) -> Iterator[Family]:
    found = {one.kind: one for one in counts}
    run = found.get(RUN)
    yield counter("reconcile_runs", "Ended runs.", [], {(): run.done if run else 0})
    text = "When a run of reconciling ended last; 0 = none ever has."
    latest = run.latest.timestamp() if run else 0.0
    yield gauge("reconcile_last_run_timestamp_seconds", text, [], {(): latest})
    actions = {
        (kind, outcome): getattr(found.get(kind), outcome, 0)
        for kind in ActionKind
        for outcome in ("done", "not_done")
    }
    text = "What reconciling decided, and whether it was done."
    yield counter("reconcile_actions", text, ["kind", "outcome"], actions)


def _of_requests(present: Present) -> Iterator[Family]:
    up = {(one.name,): not one.problem for one in present.gateways}
    text = "Whether a gateway follows the ledger."
    yield gauge("gateway_up", text, ["gateway"], up)
    used = used_by_model(present)
    requests = {(model,): one.requests for model, one in used.items()}
    text = "Requests through gateways that an engine was asked, since midnight UTC."
    yield counter("requests", text, ["model"], requests)
    failed = {(model,): one.failed for model, one in used.items()}
    text = "Those of them that were answered with 500 to 599."
    yield counter("requests_failed", text, ["model"], failed)
    tokens = {
        (model, kind): getattr(one, f"{kind}_tokens")
        for model, one in used.items()
        for kind in ("prompt", "completion")
    }
    yield counter("tokens", "Tokens of requests through gateways.", ["model", "kind"], tokens)
