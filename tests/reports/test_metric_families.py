"""Metrics as Prometheus reads them: every series, and what it begins with."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from moorage.adapters.metrics.exporter import written
from moorage.common.units import GIB
from moorage.gateway.gateway import Gateway
from moorage.gateway.usage import Usage
from moorage.inventory.claims import Capacity, Resource
from moorage.operations.metrics.activity import Activity, Outcome
from moorage.operations.metrics.present import Present, Serving
from moorage.operations.metrics.targets import Deployed, EngineTarget
from moorage.operations.reconcile.counts import RUN, ReconcileCount
from moorage.releases.states import ReleaseState
from moorage.reports.gateway_families import gateway_families
from moorage.reports.metric_families import families
from moorage.spec import EngineName
from tests.builders import NOON, a_claim
from tests.operations.metrics.test_activity import moved

S = ReleaseState


def test_all_metrics_of_a_ledger(golden: Callable[[str, str], None]) -> None:
    golden("metrics.txt", written(families(busy(), present())).decode())


def test_what_is_known_before_anything_happens_begins_with_0() -> None:
    values: dict[str, list[float]] = {}
    for family in families(Activity(), Present()):
        values |= {one.name: [] for one in family.samples}
        for one in family.samples:
            values[one.name].append(one.value)
    assert values.keys() == {
        "moorage_releases",
        "moorage_failures_total",
        "moorage_refusals_total",
        "moorage_reconcile_runs_total",
        "moorage_reconcile_last_run_timestamp_seconds",
        "moorage_reconcile_actions_total",
    }
    assert len(values["moorage_releases"]) == len(ReleaseState)
    assert not any(value for found in values.values() for value in found)


def test_a_host_that_may_have_left_the_fleet_cannot_be_down() -> None:
    (hosts,) = (one for one in families(busy(), present()) if one.name == "moorage_host_up")
    assert {one.labels["host"]: one.value for one in hosts.samples} == {"gpu-1": 1, "gpu-2": 0}


def test_a_gateway_tells_what_its_envoy_counts() -> None:
    text = written(
        gateway_families(
            {
                "http.gateway.downstream_rq_active": 3,
                "http.gateway.downstream_cx_active": 5,
                "http.gateway.downstream_rq_2xx": 70,
                "http.gateway.downstream_rq_4xx": 2,
                "cluster.tiny.v1.upstream_rq_active": 2,
                "cluster.tiny.v1.upstream_rq_pending_active": 1,
                "cluster.tiny.v1.upstream_rq_2xx": 69,
                "cluster.tiny.v1.upstream_cx_connect_fail": 4,
                "cluster.tiny.v1.upstream_rq_timeout": 0,
                "cluster.tiny.v2,tiny.v1.upstream_rq_2xx": 7,
                "cluster.doorman.upstream_rq_2xx": 7,
            }
        )
    ).decode()
    samples = {
        (one.name, *sorted(one.labels.values())): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }
    assert samples == {
        ("moorage_gateway_requests",): 3,
        ("moorage_gateway_connections",): 5,
        ("moorage_gateway_responses_total", "2xx"): 70,
        ("moorage_gateway_responses_total", "4xx"): 2,
        ("moorage_gateway_engine_requests", "active", "tiny.v1"): 2,
        ("moorage_gateway_engine_requests", "pending", "tiny.v1"): 1,
        ("moorage_gateway_engine_responses_total", "2xx", "tiny.v1"): 69,
        ("moorage_gateway_engine_problems_total", "connection", "tiny.v1"): 4,
        ("moorage_gateway_engine_problems_total", "timeout", "tiny.v1"): 0,
    }


def busy() -> Activity:
    """Of a model that was deployed, and failed once."""
    activity = Activity()
    for one in (moved(S.STARTING, S.RUNNING), moved(S.STARTING, S.ERROR)):
        activity.add_transition(one)
    phases = (("stage", 2.0), ("verify", 45.0))
    activity.add_outcome(Outcome(model="tiny", phases=phases, downtime_seconds=1.5))
    activity.add_outcome(Outcome(model="tiny", cause="no-fit", refusals={"ram": 3}))
    return activity


def present() -> Present:
    """A model on a host with an accelerator; a host with claims, and one without, are silent."""
    target = EngineTarget(replica="0", host="gpu-1", url="http://127.0.0.1:40000/metrics")
    deployed = Deployed(
        model="tiny",
        release="tiny.v1",
        revision="main",
        engine=EngineName.VLLM,
        engine_version="0.32.0",
        targets=(target,),
    )
    memory = Capacity(resource=Resource.ACCELERATOR, index=0, amount=80 * GIB)
    ram = Capacity(resource=Resource.RAM, amount=128 * GIB)
    day = {"model": "tiny", "day": "2026-03-01"}
    return Present(
        states={S.RUNNING: 1, S.ERROR: 1},
        serving=(Serving(deployed=deployed, state=S.RUNNING),),
        claims=(
            a_claim(Resource.ACCELERATOR, 60 * GIB),
            a_claim(Resource.ACCELERATOR, 4 * GIB),
            a_claim(Resource.PORT, 1, 40000),
            a_claim(Resource.ACCELERATOR, 8 * GIB, host="gpu-2"),
        ),
        capacities={"gpu-1": (memory, ram), "gpu-2": (memory,), "gone": (memory,)},
        unseen=frozenset({"gpu-2", "gone"}),
        reconciles=(
            ReconcileCount(kind=RUN, done=7, latest=NOON),
            ReconcileCount(kind="restart", done=2, not_done=1, latest=NOON),
        ),
        gateways=(Gateway(name="main", machine="box"),),
        used=(
            Usage(caller="ann", requests=3, failed=1, prompt_tokens=7, **day),
            Usage(caller="bob", requests=1, completion_tokens=5, **day),
        ),
    )
