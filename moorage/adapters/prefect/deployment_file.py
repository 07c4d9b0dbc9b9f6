"""Reads a project's prefect.yaml: the deployments that `moorage serve` serves."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prefect.client.schemas.actions import DeploymentScheduleCreate, DeploymentScheduleUpdate
from prefect.client.schemas.objects import ConcurrencyLimitConfig
from prefect.deployments.runner import RunnerDeployment
from prefect.events import DeploymentTriggerTypes
from prefect.exceptions import PrefectException
from prefect.schedules import Schedule
from prefect.utilities.templating import apply_values
from pydantic import TypeAdapter, ValidationError

from moorage.common.failures import Cause, Failure
from moorage.common.strict_yaml import decode

_TRIGGER: TypeAdapter[DeploymentTriggerTypes] = TypeAdapter(DeploymentTriggerTypes)


def deployments_of(path: Path) -> list[RunnerDeployment]:
    """Make the deployments of a prefect.yaml, to be served here instead of by a work pool.

    Raises:
        Failure: `BAD_SETTING` for a mistake in the file, with the deployment where it is.
    """
    with _mistakes(path, ""):
        # `prefect deploy` runs in the file's folder and takes PWD from the shell.
        text = path.read_text().replace("{{ $PWD }}", str(path.absolute().parent))
        entries = list((decode(text) or {})["deployments"])
    made = []
    for number, entry in enumerate(entries, 1):
        name = entry.get("name") if isinstance(entry, dict) else None
        with _mistakes(path, f"deployment {name or number}: "):
            made.append(_deployment(entry))
    return made


@contextmanager
def _mistakes(file: Path, place: str) -> Iterator[None]:
    """Tell mistakes of whoever wrote the file as failures; Prefect's own are of many kinds."""
    try:
        yield
    except KeyError as error:
        raise _mistake(file, f"{place}`{error.args[0]}` is missing") from error
    except ValidationError as error:
        first = error.errors()[0]
        field, message = ".".join(map(str, first["loc"])), first["msg"]
        message = message.removeprefix("Value error, ")
        raise _mistake(file, f"{place}{field}: {message}") from error
    except (ValueError, TypeError, AttributeError, ImportError, PrefectException) as error:
        at = f"{found}: " if (found := getattr(error, "place", "")) else ""
        raise _mistake(file, f"{at}{place}{error}") from error


def _mistake(file: Path, what: str) -> Failure:
    return Failure(Cause.BAD_SETTING, f"{file}: {what}", suggestion="Correct the file.")


def _deployment(written: dict[str, Any]) -> RunnerDeployment:
    # The server fills in the templates of triggers, since it knows the event.
    entry: dict[str, Any] = apply_values({**written, "triggers": []}, {})
    limit, triggers = entry.get("concurrency_limit"), written.get("triggers", ())
    deployment = RunnerDeployment.from_entrypoint(
        entry["entrypoint"],
        name=entry["name"],
        description=entry.get("description"),
        tags=entry.get("tags"),
        parameters=entry.get("parameters"),
        enforce_parameter_schema=entry.get("enforce_parameter_schema", True),
        schedules=[
            # Without a slug, the server refuses to register a deployment again.
            Schedule(**{**schedule, "slug": schedule.get("slug") or f"schedule-{number}"})
            for number, schedule in enumerate(entry.get("schedules") or (), 1)
        ],
        concurrency_limit=ConcurrencyLimitConfig(**limit) if isinstance(limit, dict) else limit,
        triggers=[_TRIGGER.validate_python(trigger) for trigger in triggers],
    )
    for schedule in deployment.schedules or ():
        _check_parameters(deployment, schedule)
    # Set explicitly, to remove a deployment's former work pool, whose workers would compete with
    # this machine for runs.
    deployment.work_pool_name = None
    deployment.work_queue_name = None
    return deployment


def _check_parameters(
    deployment: RunnerDeployment, schedule: DeploymentScheduleCreate | DeploymentScheduleUpdate
) -> None:
    """Refuse a schedule whose parameters are not those of the flow: each of its runs would crash.

    Raises:
        ValueError: With the parameters that are unknown or missing.
    """
    schema = deployment._parameter_openapi_schema
    given = {*(deployment.parameters or ()), *(schedule.parameters or ())}
    if unknown := sorted(given - schema.properties.keys()):
        allowed = ", ".join(sorted(schema.properties))
        raise ValueError(f"schedules: unknown parameter {', '.join(unknown)}; allowed: {allowed}")
    if missing := sorted({*schema.required} - given):
        raise ValueError(f"schedules: the parameter {', '.join(missing)} is missing")
