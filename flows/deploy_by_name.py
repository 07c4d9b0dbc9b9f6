"""Deploy a model whose spec is a file of the site: the short form of `deploy-model`."""

from contextlib import nullcontext, suppress
from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from pydantic import Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from flows.deploy_model import deploy_model
from flows.flow_context import NO_RESULT, keep_result, reported_failure
from moorage.adapters.files.site_specs import load_site_spec, site_spec_names
from moorage.adapters.files.specs import validated_spec
from moorage.adapters.prefect.task_runner import task_runner
from moorage.adapters.system.threads import in_thread
from moorage.common.failures import Failure
from moorage.inventory.fleet import Fleet
from moorage.policy.request import Submission
from moorage.releases.release import Release
from moorage.releases.requester import Claim
from tasks.context import settings
from tasks.policy import recorded_scope, settled_fleet


class _OfferFiles:
    """Adds the names of the site's existing spec files to the form's schema."""

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core)
        with suppress(Failure):  # each run reports an unreadable policy
            if names := site_spec_names(settings()):
                schema["enum"] = names
        return schema


SpecName = Annotated[str, Field(min_length=1, max_length=255), _OfferFiles()]


@flow(name="deploy-by-name", flow_run_name="deploy {spec}", **NO_RESULT, task_runner=task_runner())
@keep_result
async def deploy_by_name(
    spec: SpecName,
    revision: str = "",
    replicas: Annotated[int, Field(ge=0, le=1024)] = 0,
    force: bool = False,
    reason: Claim = "",
) -> State[Release]:
    """Deploy the model that a file in `deployments/` describes.

    An unchanged file counts as submitted by the command line; with another revision or number of
    replicas it counts as submitted through the API, and the policy's rules for the API apply.

    Args:
        spec: The file's name without `.yaml`.
        revision: Branch, tag or commit; empty = the file's.
        replicas: Number of replicas; 0 = the file's.
        force: Replace the serving release even if neither the spec nor the model has changed.
        reason: The reason or the requester, for the record; not verified.
    """
    given = {"revision": revision, "replicas": replicas}
    changes = {field: value for field, value in given.items() if value}
    async with reported_failure(spec):
        fleet = await settled_fleet(Fleet())
        written = await in_thread(load_site_spec, spec, settings())
        wanted = validated_spec({**written.model_dump(exclude_defaults=True), **changes})
    with recorded_scope(Submission(), fleet) if wanted == written else nullcontext():
        return await deploy_model.fn(wanted, fleet, force=force, requested_by=reason)
