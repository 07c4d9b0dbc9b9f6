"""Reading a model's configuration, with the help of transformers where it knows the model type."""

from __future__ import annotations

import importlib
import json
import threading
from pathlib import Path
from typing import Any

from moorage.failures import Cause, Failure

Config = dict[str, Any]

AUTO_MODULE = "transformers.models.auto.configuration_auto"

NOT_THE_MODELS_OWN = ("_name_or_path", "transformers_version")
"""What transformers adds about this machine, not about the model."""


def read_config(directory: Path, *, trust_remote_code: bool) -> tuple[Config, str]:
    """Read config.json, enriched with the defaults that transformers knows for the model type.

    What the file says wins over what transformers makes of it; a `null` in the file says nothing.
    The network is never used.

    Args:
        directory: Where config.json is.
        trust_remote_code: Whether Python code that comes with the model may run.

    Returns:
        The configuration as plain JSON values, and who read it: `transformers` or `config.json`.

    Raises:
        Failure: `CONFIG_UNREADABLE` when neither can read it, with both reasons.
    """
    written = _written(directory)
    known = _known(directory, trust_remote_code)
    if isinstance(written, str):
        detail = f"config.json: {written}"
        if isinstance(known, str):
            detail += f"; transformers: {known}"
        raise Failure(Cause.CONFIG_UNREADABLE, detail)
    if isinstance(known, str):
        return written, "config.json"
    return _merge(known, written), "transformers"


def warm() -> None:
    """Import transformers in the background, while the caller waits for something else anyway."""
    threading.Thread(target=importlib.import_module, args=(AUTO_MODULE,), daemon=True).start()


def _written(directory: Path) -> Config | str:
    """The file's content, or why it cannot be read."""
    try:
        content = json.loads((directory / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        return str(error)
    return content if isinstance(content, dict) else "it is not a JSON object"


def _known(directory: Path, trust_remote_code: bool) -> Config | str:
    """The configuration as transformers completes it, or why it cannot."""
    try:
        # transformers brings torch and takes seconds to import; most commands never come here.
        from transformers import AutoConfig  # noqa: PLC0415

        config = AutoConfig.from_pretrained(
            directory, local_files_only=True, trust_remote_code=trust_remote_code
        ).to_dict()
        # Through JSON, so that keys are texts and values plain, as in the file.
        plain: Config = json.loads(json.dumps(config, default=str))
    except Exception as error:  # the model's own code may raise anything, and so may torch
        return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
    return {key: value for key, value in plain.items() if key not in NOT_THE_MODELS_OWN}


def _merge(known: Config, written: Config) -> Config:
    merged = dict(known)
    for key, value in written.items():
        below = known.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            merged[key] = _merge(below, value)
        elif value is not None or key not in known:
            merged[key] = value
    return merged
