"""Places a model on a Ray cluster: Ray chooses the nodes; this refuses what could never run."""

from moorage.common.failures import Cause, Failure
from moorage.common.refusal import Reason
from moorage.common.units import counted
from moorage.common.values import Origin
from moorage.common.versions import version_key
from moorage.inventory.clusters import ClusterSnapshot, application_name
from moorage.models.profile import ModelProfile
from moorage.placement.explanation import Verdict
from moorage.placement.parallelism import Parallelism, stated_parallelism
from moorage.placement.placement import CPU, Placement, Seat
from moorage.placement.propose import NoFit
from moorage.placement.replacement import ReplacementPolicy
from moorage.spec import ApplicationSpec, EngineName, Mode, ModelSpec, RuntimeName

OLDEST = {EngineName.CUSTOM: "2.40", EngineName.VLLM: "2.44"}
"""Oldest Ray with the REST API that we read, and with `ray.serve.llm:build_openai_app`."""

OLDEST_ON_CPU = "2.60"
"""Oldest Ray with which we saw Ray Serve LLM serve vLLM without accelerators."""

MODES = frozenset({Mode.COMPLETION, Mode.EMBEDDING, Mode.TRANSCRIPTION})
"""Modes that Ray Serve LLM's ingress answers in the format that readiness checks expect."""

ACCELERATED = "gpu"


def propose_on_cluster(
    spec: ModelSpec, profile: ModelProfile, cluster: ClusterSnapshot, running: str = ""
) -> Placement:
    """Place a model on a cluster. Nothing is claimed: Ray manages the cluster's resources.

    Raises:
        Failure: `BAD_SPEC`, `CLUSTER_UNSUITABLE`, or `NO_FIT` when the cluster lacks accelerators.
    """
    name, origin, reason = spec.engine.name, Origin.USER, "engine.name in the spec"
    if name == EngineName.AUTO:
        name, origin, reason = EngineName.VLLM, Origin.DERIVED, "what Ray Serve LLM serves"
    _require_ray(cluster, name, OLDEST[name])
    sizes = _sizes(spec, profile) if name == EngineName.VLLM else None
    if name == EngineName.VLLM and sizes is None:
        _require_ray(cluster, "vllm on CPU", OLDEST_ON_CPU)
    wanted = sizes.world * _replicas(spec) if sizes else 0
    placement = Placement(
        engine=name,
        engine_origin=origin,
        engine_reason=reason,
        seats=(),
        verdicts=(_verdict(spec, cluster, wanted),),
    )
    if placement.verdicts[0].refusal:
        remedy = (
            "Lower `placement.accelerators` or `replicas`, add nodes to the cluster, or set"
            f" `clusters.{cluster.name}.autoscales` in the fleet file if it adds them by itself."
        )
        raise NoFit(Cause.NO_FIT, placement.model_copy(update={"remedies": (remedy,)}))
    return placement.model_copy(
        update={
            "seats": (_seat(spec, cluster, sizes),),
            "stop_first": _stop_first(spec, cluster, wanted, running),
        }
    )


def _require_ray(cluster: ClusterSnapshot, what: str, oldest: str) -> None:
    if version_key(cluster.version) < version_key(oldest):
        raise Failure(
            Cause.CLUSTER_UNSUITABLE,
            f"{cluster.name} runs Ray {cluster.version}; {what} needs {oldest} or newer",
        )


def _sizes(spec: ModelSpec, profile: ModelProfile) -> Parallelism | None:
    """The parallel sizes of one replica on accelerators; None = it runs on CPU."""
    if profile.mode not in MODES:
        raise _bad("mode", f"Ray Serve LLM does not serve {profile.mode}")
    given = spec.placement.accelerators
    wanted = given if isinstance(given, int) else 1
    stated = stated_parallelism(spec.engine.arguments)
    if wanted == 0:
        return None
    if stated and given != "auto" and stated.world != wanted:
        raise _bad("placement.accelerators", f"{wanted}, but engine.args say {stated}")
    sizes = stated or Parallelism(tensor=wanted)
    if sizes.world != sizes.tensor * sizes.pipeline:
        # Ray Serve LLM reserves accelerators for tensor and pipeline ranks only.
        why = f"Ray Serve LLM serves no replica of {sizes}"
        raise _bad("engine.args", why, "Use `replicas` for copies, or more tensor-parallel ranks.")
    if profile.attention_heads and profile.attention_heads % sizes.tensor:
        heads = profile.attention_heads
        raise _bad("placement.accelerators", f"{heads} attention heads do not go by {sizes.tensor}")
    return sizes


def _replicas(spec: ModelSpec) -> int:
    scaling = _application(spec).autoscaling
    return scaling.min_replicas if scaling else spec.replicas


def _verdict(spec: ModelSpec, cluster: ClusterSnapshot, wanted: int) -> Verdict:
    kind = _application(spec).accelerator_type
    summary = cluster.summary
    if cluster.autoscales:
        return Verdict(host=cluster.name, note=f"{summary}; it adds nodes when they are needed")
    if wanted > cluster.accelerators:
        note = f"{counted(wanted, 'accelerator')} needed; {summary}"
        return Verdict(host=cluster.name, refusal=Reason.NO_ACCELERATOR, note=note)
    if kind and not cluster.total.get(f"accelerator_type:{kind}"):
        there = [name.partition(":")[2] for name in cluster.total if name.startswith("accel")]
        note = f"no {kind} there, but {', '.join(sorted(there)) or 'none that it names'}"
        return Verdict(host=cluster.name, refusal=Reason.KIND, note=note)
    return Verdict(host=cluster.name, note=summary)


def _seat(spec: ModelSpec, cluster: ClusterSnapshot, sizes: Parallelism | None) -> Seat:
    each = f" of {sizes.world} accelerators ({sizes})" if sizes and sizes.world > 1 else ""
    replicas = f"{counted(_replicas(spec), 'replica')}{each}"
    return Seat(
        replica=0,
        host=cluster.name,
        runtime=RuntimeName.RAY,
        accelerator_type=ACCELERATED if sizes else CPU,
        port=0,
        tensor=sizes.tensor if sizes else 1,
        pipeline=sizes.pipeline if sizes else 1,
        reason=(f"Ray Serve starts {replicas} on nodes that it chooses; nothing is claimed there"),
    )


def _stop_first(spec: ModelSpec, cluster: ClusterSnapshot, wanted: int, running: str) -> str:
    """The running release that must stop first, with the reason; empty = none.

    Without this, Ray would let the new application wait forever for accelerators of the old one.
    """
    policy, free = ReplacementPolicy(spec.replace.strategy, running), cluster.accelerators_free
    if not policy.may_overlap:
        return policy.stop_reason("")
    if not running or free is None or cluster.autoscales or free >= wanted:
        return ""
    if application_name(running) not in cluster.applications:
        return ""
    needed = f"{counted(wanted, 'accelerator')} needed, {free} free on {cluster.name}"
    if not policy.may_stop_first:
        raise Failure(Cause.NO_FIT, needed, suggestion=policy.remedy)
    return f"{running} stops first: {needed}"


def _application(spec: ModelSpec) -> ApplicationSpec:
    return spec.engine.application or ApplicationSpec()


def _bad(field: str, why: str, suggestion: str | None = None) -> Failure:
    return Failure(Cause.BAD_SPEC, f"{field}: {why}", suggestion=suggestion)
