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
"""Folder in the container; it holds only this model."""

VERSION = 1
"""The only version of the model; a new version is a new release."""

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
        flags: vLLM's arguments, the user's last.
        adapters: The LoRA adapters, which Triton reads from a separate file.
        schema: The arguments of the version, for the types of their values.

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
    """The derived flags minus those that the user states, and those for vLLM's HTTP server."""
    kept = (flag for flag in derived if flag.tokens[0] not in NOT_THE_ENGINES)
    return without_user_flags(kept, written, ALIASES)


NOT_THE_ENGINES = SERVER_OPTIONS | {"--shutdown-timeout"}
"""Derived options for vLLM's own HTTP server; Triton itself drains requests and lists adapters."""


def _configuration(settings: TritonSettings) -> str:
    """The model's configuration; the backend adds inputs, outputs, decoupling and batching."""
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
