"""The Ray Serve application of a release."""

from collections.abc import Mapping
from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.values import Origin, Value
from moorage.engines.command_line import filled
from moorage.engines.flags import Flag, Variable, user_flag, variable
from moorage.engines.labels import labels_of
from moorage.engines.launch import Application, ContainerSpec
from moorage.engines.ray_serve import MARK_LEDGER, MARK_RELEASE
from moorage.engines.schema.argument import Schema
from moorage.inventory.clusters import ClusterSnapshot, application_name
from moorage.models.profile import ModelProfile
from moorage.models.source import ResolvedModel
from moorage.placement.placement import Seat
from moorage.spec import ApplicationSpec, ModelSpec


class ApplicationRequest(Value):
    """The facts from which an application is built.

    Attributes:
        arguments: vLLM's arguments in the version on the cluster, as far as it is known.
    """

    spec: ModelSpec
    profile: ModelProfile
    model: ResolvedModel
    seat: Seat
    cluster: ClusterSnapshot
    release: str
    ledger: str
    arguments: Schema

    @property
    def settings(self) -> ApplicationSpec:
        """The user's settings of the application."""
        return self.spec.engine.application or ApplicationSpec()

    @property
    def source(self) -> str:
        """The model's source for the cluster's nodes: `org/repo` of the hub, or a path on them."""
        kind, _, rest = self.model.source.partition("://")
        return rest if kind == "hf" else self.model.path


class ApplicationParts(Value):
    """The parts from which Ray Serve builds an application: a builder and its arguments."""

    import_path: str
    args: dict[str, Any]
    flags: tuple[Flag, ...] = ()
    """The flags that became the arguments, each with its reason."""
    variables: tuple[Variable, ...] = ()
    """The engine's own variables; the user's variables override them."""

    deployments: tuple[dict[str, Any], ...] = ()


def application(request: ApplicationRequest, built: ApplicationParts) -> ContainerSpec:
    """The application of a release, with its own name and route.

    The new and the old release run side by side until the new one is verified. Removing its
    application stops a release.
    """
    seat, name, route = request.seat, application_name(request.release), f"/{request.release}"
    variables = _variables(request, built)
    config: dict[str, Any] = {
        "name": name,
        "route_prefix": route,
        "import_path": built.import_path,
        "args": built.args,
        "runtime_env": {
            **request.settings.runtime_env,
            "env_vars": {one.name: one.value for one in variables},
        },
    }
    if built.deployments:
        config["deployments"] = list(built.deployments)
    return ContainerSpec(
        name=name,
        host=request.cluster.name,
        address=request.cluster.address,
        runtime=seat.runtime,
        command=built.flags,
        environment=variables,
        accelerator_type=seat.accelerator_type,
        bind="",
        port=0,
        labels=labels_of(request.ledger, request.spec.name, request.release, seat),
        application=Application(endpoint=f"{request.cluster.serve}{route}", config=config),
    )


def custom_application(request: ApplicationRequest) -> ApplicationParts:
    """The user's own application, with placeholders in its arguments filled in.

    Raises:
        Failure: `BAD_SPEC` when `import_path` is missing.
    """
    settings = request.settings
    if settings.import_path is None:
        raise Failure(Cause.BAD_SPEC, "engine.application.import_path: it is missing")
    known = {"model_path": request.source, "model_name": request.spec.name}
    return ApplicationParts(
        import_path=settings.import_path,
        args=_filled(settings.args, known),
        flags=(user_flag("engine.application", (settings.import_path,)),),
        deployments=settings.deployments,
    )


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return filled((value,), known, {})[0]
    if isinstance(value, dict):
        return {key: _filled(item, known) for key, item in value.items()}
    return [_filled(item, known) for item in value] if isinstance(value, list) else value


def _variables(request: ApplicationRequest, built: ApplicationParts) -> tuple[Variable, ...]:
    marks = {MARK_LEDGER: request.ledger, MARK_RELEASE: request.release}
    variables = (
        *built.variables,
        *(variable(*item, "engine.env", Origin.USER) for item in request.spec.engine.env.items()),
        *(
            variable(*item, "by it the application is known", Origin.DERIVED)
            for item in marks.items()
        ),
    )
    return tuple({one.name: one for one in variables}.values())
