"""Adapters that are loaded and unloaded while an engine serves: its requests and answers."""

from typing import Any

from moorage.common.failures import Cause, Failure
from moorage.common.values import Value
from moorage.engines.launch import ContainerSpec
from moorage.models.profile import ModelProfile
from moorage.readiness.protocol import Phase, Probe, readiness_probes
from moorage.spec import ModelSpec, RuntimeName

DEADLINE = "warm_up_seconds"
RANK_TOO_LARGE = ("max_lora_rank", "--max-lora-rank")
"""What engines name when an adapter's rank is beyond the buffers that they made at their start."""

UNKNOWN = {404: "{name}", 400: "LoRA with name {name} does not exist"}
"""What vLLM and SGLang say of an adapter that they do not have, by HTTP status."""


class AdapterUpdates(Value):
    """How an engine takes adapters while it serves.

    Attributes:
        load: Path to which a name and a directory are posted.
        unload: Path to which a name is posted.
    """

    load: str
    unload: str

    def loading(self, name: str, directory: str) -> Probe:
        """Ask for an adapter to be loaded from a directory that the engine sees."""
        return _post(self.load, name, {"lora_name": name, "lora_path": directory})

    def unloading(self, name: str) -> Probe:
        """Ask for an adapter to be unloaded."""
        return _post(self.unload, name, {"lora_name": name})


def adapter_probes(
    spec: ModelSpec, profile: ModelProfile, name: str, model: str
) -> tuple[Probe, ...]:
    """How an adapter proves that it serves: it is listed, and it answers as the model does.

    Args:
        spec: The spec of its base model.
        profile: Of its base model.
        name: Under which it is listed.
        model: What a request for it names.
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
    """Where a workload sees a path below the folder of adapters that are loaded later.

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
    """The failure that an engine's answer stands for, in the engine's own words."""
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
    """Whether an engine says that it has no adapter of that name, and not: no such endpoint."""
    return status in UNKNOWN and UNKNOWN[status].format(name=name) in _words(answer)


def _post(path: str, name: str, body: dict[str, Any]) -> Probe:
    return Probe(
        phase=Phase.ANSWERED,
        deadline=DEADLINE,
        method="POST",
        path=path,
        body=body,
        name=name,
        patient=False,
    )


def _words(answer: Any) -> str:
    """The message of an error as vLLM, FastAPI and SGLang write it; anything else as it is."""
    if isinstance(answer, dict):
        error = answer.get("error")
        inner = error.get("message") if isinstance(error, dict) else None
        named = (answer.get(key) for key in ("message", "detail", "error_message"))
        return str(inner or next(filter(None, named), answer))
    return str(answer)
