"""The model repository that Triton serves from: its configuration, and the arguments of vLLM."""

import json
from collections.abc import Iterable
from typing import Any

from moorage.engines.command_line import without_user_flags
from moorage.engines.companions import Adapter
from moorage.engines.flags import Flag
from moorage.engines.launch import GeneratedFile
from moorage.engines.schema.argument import Schema
from moorage.engines.schema.keywords import keywords
from moorage.engines.triton.options import SERVER_OPTIONS
from moorage.engines.vllm.options import ALIASES
from moorage.spec import TritonSettings
from moorage.spec.arguments import EngineArguments

REPOSITORY = "/moorage/repository"
"""In the container; it holds this one model."""

VERSION = 1
"""The only version of the model. Another one is another release."""

NAME = "config.pbtxt"
ARGUMENTS = "model.json"
ADAPTERS = "multi_lora.json"


def repository(
    name: str,
    settings: TritonSettings,
    flags: tuple[Flag, ...],
    adapters: Iterable[Adapter],
    schema: Schema,
) -> tuple[GeneratedFile, ...]:
    """The files of a model's repository.

    Args:
        name: Name under which it is served.
        settings: Of the spec.
        flags: vLLM's arguments, the user's last.
        adapters: The LoRA adapters; Triton takes them from a file of their own.
        schema: The arguments that the version knows, for the types of their values.

    Raises:
        Failure: `BAD_SPEC` for an argument that the version does not know, or a bad value.
    """
    words = [word for flag in flags for word in flag.tokens]
    folder = f"{REPOSITORY}/{name}"
    paths = {adapter.name: adapter.path for adapter in adapters}
    return (
        GeneratedFile(path=f"{folder}/{NAME}", content=_configuration(settings)),
        GeneratedFile(
            path=f"{folder}/{VERSION}/{ARGUMENTS}",
            content=_document(keywords(words, schema)),
            flags=flags,
        ),
        *(
            [GeneratedFile(path=f"{folder}/{VERSION}/{ADAPTERS}", content=_document(paths))]
            if paths
            else []
        ),
    )


def arguments(derived: Iterable[Flag], written: EngineArguments) -> tuple[Flag, ...]:
    """Derived flags without those that the user states, or that an HTTP server would take."""
    kept = (flag for flag in derived if flag.tokens[0] not in NOT_THE_ENGINES)
    return without_user_flags(kept, written, ALIASES)


NOT_THE_ENGINES = SERVER_OPTIONS | {"--shutdown-timeout"}
"""Derived options that concern vLLM's own HTTP server; Triton waits and lists adapters itself."""


def _configuration(settings: TritonSettings) -> str:
    """The backend completes inputs, outputs, decoupling and batching itself."""
    switches = {
        "REPORT_CUSTOM_METRICS": settings.metrics,
        "ENABLE_VLLM_HEALTH_CHECK": settings.health_check,
    }
    lines = ['backend: "vllm"', f"instance_group [ {{ count: 1 kind: {settings.instance} }} ]"]
    lines += [
        f'parameters {{ key: "{name}" value {{ string_value: "true" }} }}'
        for name, wanted in switches.items()
        if wanted
    ]
    return "\n".join(lines) + "\n"


def _document(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2) + "\n"
