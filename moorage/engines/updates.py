"""Requests and answers for loading and unloading adapters while an engine serves."""

from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.values import Value
from moorage.engines.launch import ContainerSpec
from moorage.models.profile import ModelProfile
from moorage.readiness.protocol import Phase, Probe, question, readiness_probes
from moorage.spec import ModelSpec, RuntimeName

RANK_TOO_LARGE = ("max_lora_rank", "--max-lora-rank")
"""Words in engines' errors if an adapter's rank exceeds the buffers allocated at start."""

UNKNOWN = {404: "{name}", 400: "LoRA with name {name} does not exist"}
"""Messages of vLLM and SGLang about an unknown adapter, by HTTP status."""


class AdapterUpdates(Value):
    """How an engine loads adapters while serving.

    Attributes:
        load: Path to which a name and a directory are posted.
        unload: Path to which a name is posted.
    """

    load: str
    unload: str

    def loading(self, name: str, directory: str) -> Probe:
        """The request to load an adapter from a directory that the engine sees."""
        return question(self.load, {"lora_name": name, "lora_path": directory}, name)

    def unloading(self, name: str) -> Probe:
        """The request to unload an adapter."""
        return question(self.unload, {"lora_name": name}, name)


def adapter_probes(
    spec: ModelSpec, profile: ModelProfile, name: str, model: str
) -> tuple[Probe, ...]:
    """The probes that prove that an adapter serves: it is listed, and it answers like the model.

    It is listed as `name`, and requests for it name `model`.
    """
    names = {Phase.LISTED: name, Phase.ANSWERED: model}
    return tuple(
        probe
        for phase, one in names.items()
        for probe in readiness_probes(
            spec.model_copy(update={"name": one}), profile, lists_models=True
        )
        if probe.phase == phase
    )


def seen_by(container: ContainerSpec, folder: str, path: str) -> str:
    """The path at which a workload sees a path below the folder of adapters loaded later.

    Raises:
        Failure: `ADAPTERS_FIXED` for a container that does not see the folder.
    """
    if container.runtime == RuntimeName.PROCESS:
        return path
    targets = [mount.target for mount in container.mounts if mount.source == folder]
    if not targets:
        raise Failure(Cause.ADAPTERS_FIXED, f"{container.name} does not see {folder}")
    return targets[0] + path.removeprefix(folder)


def refusal(name: str, workload: str, status: int, answer: Any) -> Failure:
    """The failure for an engine's error answer, in the engine's own words."""
    message = _words(answer)
    if status == 404 and not lacks_adapter(name, status, answer):
        detail = f"{workload}: the server has no such endpoint: {message}"
        return Failure(Cause.ADAPTERS_FIXED, detail)
    outcome = f"HTTP {status}" if status else "no answer"
    advice = None
    if any(words in message for words in RANK_TOO_LARGE):
        advice = "Raise `lora_updates.rank` to the adapter's rank and deploy the model again."
    detail = f"{workload}: {name}: {outcome}: {message}"
    return Failure(Cause.ADAPTER_REFUSED, detail, suggestion=advice)


def lacks_adapter(name: str, status: int, answer: Any) -> bool:
    """Whether the answer means that the engine has no such adapter, not no such endpoint."""
    return status in UNKNOWN and UNKNOWN[status].format(name=name) in _words(answer)


def _words(answer: Any) -> str:
    """The message in an error of vLLM, FastAPI or SGLang; any other answer unchanged."""
    if isinstance(answer, dict):
        error = answer.get("error")
        inner = error.get("message") if isinstance(error, dict) else None
        named = (answer.get(key) for key in ("message", "detail", "error_message"))
        return str(inner or next(filter(None, named), answer))
    return str(answer)
