"""The launch plan of a model on a Ray cluster: one application of Ray Serve."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from moorage.common.failures import Cause, Failure
from moorage.engines.application import (
    ApplicationParts,
    ApplicationRequest,
    application,
    custom_application,
)
from moorage.engines.launch import LaunchPlan
from moorage.engines.vllm.ray_application import vllm_application
from moorage.readiness.diagnosis import LogCause
from moorage.spec import EngineName

BUILDERS: dict[EngineName, Callable[[ApplicationRequest], ApplicationParts]] = {
    EngineName.VLLM: vllm_application,
    EngineName.CUSTOM: custom_application,
}

CLUSTER_CAUSES = (
    LogCause(
        pattern=r"ModuleNotFoundError: No module named '(?P<module>[^']+)'",
        cause=Cause.PROGRAM_MISSING,
        suggestion="{module} is not in the Python of the cluster's nodes. vLLM there takes"
        " `ray[serve,llm]`; an application of your own brings its packages in"
        " `engine.application.runtime_env`.",
    ),
)
"""Texts in an application's messages that do not come from its engine."""


def plan_on_cluster(request: ApplicationRequest, engine: EngineName) -> LaunchPlan:
    """The plan of a release on a Ray cluster.

    Args:
        request: The application.
        engine: Its engine.

    Raises:
        Failure: `BAD_SPEC` when the engine cannot do what the spec asks for.
    """
    if engine not in BUILDERS:
        raise Failure(Cause.BAD_SPEC, f"engine.name: {engine} cannot run on a Ray cluster")
    return LaunchPlan(
        release=request.release,
        engine=engine,
        engine_version=request.spec.engine.version or "",
        containers=(application(request, BUILDERS[engine](request)),),
        warnings=_warnings(request, engine),
    )


def _open_to_all(request: ApplicationRequest) -> list[str]:
    """Ray Serve asks for no key, and its dashboard would show one."""
    host = urlsplit(request.cluster.serve).hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return []
    return [
        f"the application answers everybody who reaches {request.cluster.serve}, and knows no key;"
        " a proxy in front of it can ask for one"
    ]


def _warnings(request: ApplicationRequest, engine: EngineName) -> tuple[str, ...]:
    spec, cluster = request.spec, request.cluster.name
    notes = _open_to_all(request)
    if not request.model.source.startswith("hf://"):
        notes.append(f"{request.source} has to be on every node of {cluster}; nothing is copied")
    if "HF_TOKEN" in spec.secrets:
        notes.append(
            f"HF_TOKEN is used here only: the nodes of {cluster} need one in their own environment,"
            " for Ray's dashboard would show it"
        )
    if engine == EngineName.VLLM and not spec.engine.version:
        version = request.arguments.version
        notes.append(
            f"arguments are written as for vLLM {version}; which one {cluster} has is not known,"
            " `engine.version` says it"
        )
    return tuple(notes)
