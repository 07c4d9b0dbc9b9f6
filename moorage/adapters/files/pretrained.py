"""Reads a model's configuration, with defaults from transformers if it knows the model type.

Importing transformers takes seconds, so completed configurations are cached in the home.
"""

import hashlib
import importlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from moorage.adapters.files.safe_files import read_json, write_private
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.common.strict_json import JsonLimits
from moorage.models.config import require_limits

Config = dict[str, Any]

CONFIG = "config.json"
AUTO_MODULE = "transformers.models.auto.configuration_auto"

LIMITS = JsonLimits(constants=True)
"""Some configurations contain `Infinity`, as Python writes it."""

NOT_THE_MODELS_OWN = ("_name_or_path", "transformers_version")
"""Keys that transformers adds about this machine, not about the model."""

NO_ADVICE = "TRANSFORMERS_NO_ADVISORY_WARNINGS"
"""Variable that keeps transformers from warning on import that torch is missing."""

TORCH = "torch"
"""Package that transformers imports if it is installed. The import takes seconds and 300 MiB, and
transformers' own configurations do not need it."""

OTHER_FILES = "configuration_files"
"""Key under which a configuration names files for other versions of transformers."""


_TORCH_HIDDEN = threading.RLock()


def read_config(directory: Path, *, trust_remote_code: bool) -> tuple[Config, str]:
    """Read config.json, enriched with the defaults that transformers knows for the model type.

    Values in the file take precedence over values from transformers, except `null`. The network is
    never used. Python code that comes with the model runs only if it is trusted.

    Returns:
        The configuration as plain JSON values, and its reader: `transformers`, or `config.json` if
        transformers is not installed or cannot read it.

    Raises:
        Failure: `CONFIG_UNREADABLE` when the file cannot be opened, `SOURCE_CORRUPT` when it is
            malformed, or a field exceeds the limits of any model.
    """
    written = _read_file(directory)
    if find_spec("transformers") is None:
        return written, "config.json; transformers, which knows defaults, is not installed"
    place = None if trust_remote_code else _place(written)
    if place and (kept := _kept(place)) is not None:
        return _merge(kept, written), "transformers"
    completed = _completed(directory, written, trust_remote_code)
    if completed is None:
        return written, CONFIG
    if place:
        with suppress(Failure):  # without the cache, the next command uses transformers again
            write_private(place, json.dumps(completed), over=True)
    return _merge(completed, written), "transformers"


def import_transformers() -> None:
    """Import transformers' configuration module, if it is installed and works; takes seconds."""
    if find_spec("transformers") is None:
        return
    # It refuses versions of its own needs; most models are read without it.
    with suppress(Exception), _without_torch():
        given = os.environ.get(NO_ADVICE)
        os.environ[NO_ADVICE] = "1"
        try:
            importlib.import_module(AUTO_MODULE)
        finally:
            if given is None:
                del os.environ[NO_ADVICE]
            else:
                os.environ[NO_ADVICE] = given


def _place(written: Config) -> Path:
    """Path of the cached configuration: a hash of all that the completion depends on."""
    identity = json.dumps([version("transformers"), _checked(written)], sort_keys=True)
    return Settings().configs / f"{hashlib.sha256(identity.encode()).hexdigest()}.json"


def _kept(place: Path) -> Config | None:
    """The cached configuration; None = missing or unreadable."""
    with suppress(OSError, Failure):
        content = read_json(place, LIMITS)
        return content if isinstance(content, dict) else None
    return None


def _read_file(directory: Path) -> Config:
    """Content of the file, checked before transformers is imported."""
    try:
        content = read_json(directory / CONFIG, LIMITS)
    except OSError as error:
        raise Failure(Cause.CONFIG_UNREADABLE, f"{CONFIG}: {error}") from None
    if not isinstance(content, dict):
        raise Failure(Cause.SOURCE_CORRUPT, f"{CONFIG} is not a JSON object")
    require_limits(content, CONFIG, Cause.SOURCE_CORRUPT)
    return content


def _completed(directory: Path, written: Config, trust_remote_code: bool) -> Config | None:
    """The configuration completed by transformers; None = it cannot read it."""
    try:
        import_transformers()
        if AUTO_MODULE not in sys.modules:
            return None
        from transformers import AutoConfig, logging  # noqa: PLC0415  (few commands come here)

        # Its messages would repeat untrusted text of the model's author.
        logging.set_verbosity(logging.CRITICAL)
        # The model's own code may need torch.
        lean = nullcontext() if trust_remote_code else _without_torch()
        with lean, _checked_folder(directory, written, trust_remote_code) as folder:
            config = AutoConfig.from_pretrained(
                folder, local_files_only=True, trust_remote_code=trust_remote_code
            ).to_dict()
        # Through JSON, so that keys are strings and values plain, as in the file.
        plain: Config = json.loads(json.dumps(config, default=str))
    except Exception:  # the model's own code may raise anything, and so may torch
        return None
    return {key: value for key, value in plain.items() if key not in NOT_THE_MODELS_OWN}


@contextmanager
def _checked_folder(directory: Path, written: Config, trusted: bool) -> Iterator[Path]:
    """The directory if its code is trusted, else a temporary one with only the checked file."""
    if trusted:
        yield directory
        return
    with TemporaryDirectory(prefix="moorage-config-") as alone:
        Path(alone, CONFIG).write_text(json.dumps(_checked(written)))
        yield Path(alone)


def _checked(written: Config) -> Config:
    """The part of a configuration that transformers gets."""
    return {key: value for key, value in written.items() if key != OTHER_FILES}


@contextmanager
def _without_torch() -> Iterator[None]:
    """Make `import torch` fail inside the block, unless torch is already imported."""
    with _TORCH_HIDDEN:
        hides = TORCH not in sys.modules
        if hides:
            sys.modules[TORCH] = None  # type: ignore[assignment]
        try:
            yield
        finally:
            if hides:
                del sys.modules[TORCH]


def _merge(known: Config, written: Config) -> Config:
    merged = dict(known)
    for key, value in written.items():
        below = known.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            merged[key] = _merge(below, value)
        elif value is not None or key not in known:
            merged[key] = value
    return merged
