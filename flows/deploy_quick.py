"""Deploy a model from its name on the hub and five choices: the short form of `deploy-model`."""

from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from pydantic import Field

from flows.deploy_model import deploy_model
from flows.flow_context import NO_RESULT, keep_result, reported_failure
from moorage.adapters.files.specs import validated_spec
from moorage.adapters.prefect.task_runner import task_runner
from moorage.releases.release import Release
from moorage.spec import EngineName, Name
from moorage.spec.one_shot import NUMBER_PATTERN, quick_spec

Number = Annotated[str, Field(pattern=NUMBER_PATTERN)]


@flow(name="deploy-quick", flow_run_name="deploy {name}", **NO_RESULT, task_runner=task_runner())
@keep_result
async def deploy_quick(
    name: Name,
    source: Annotated[str, Field(min_length=1, max_length=4096)],
    engine: EngineName = EngineName.AUTO,
    accelerators: Number = "auto",
    context: Number = "auto",
    keep_alive: Annotated[str, Field(max_length=40)] = "never",
) -> State[Release]:
    """Deploy a model with six fields; all others have their defaults.

    Args:
        name: Name of the model in requests.
        source: `org/repo` on the hub, `org/repo:Q4_K_M` for a quantization, or a source such as
            `s3://bucket/prefix`. Of several quantizations the largest that fits is taken.
        engine: The inference server.
        accelerators: Accelerators of each replica: `auto`, or a number; 0 = on CPU.
        context: Longest context in tokens, or `auto` for the model's own.
        keep_alive: How long it stays loaded without requests, such as `30m`; `never` = always.
    """
    async with reported_failure(name):
        content = quick_spec(name, source, engine, accelerators, context, keep_alive)
        spec = validated_spec(content)
    return await deploy_model.fn(spec)
