"""The specs of the site: files in the folders that the policy names, chosen by name."""

from functools import lru_cache
from pathlib import Path

from moorage.adapters.files.policy_file import load_policy, roots_of
from moorage.adapters.files.safe_files import read_small
from moorage.adapters.files.specs import load_spec, spec_names
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.common.strict_yaml import LARGEST_TEXT, YamlError, decode
from moorage.policy.request import Channel
from moorage.spec import ModelSpec

SPEC_KEYS, FLEET_KEY = frozenset({"name", "source"}), "hosts"
"""Keys of every spec, and a key of fleets only; a folder of specs may contain other files."""


def site_spec_names(settings: Settings) -> list[str]:
    """Names of the site's specs: files without `.yaml` in `spec_folders` of the API's rules.

    Raises:
        InvalidFile: The policy cannot be read or trusted.
    """
    return sorted(_files(settings))


def load_site_spec(name: str, settings: Settings) -> ModelSpec:
    """Read the site's spec of a name.

    Raises:
        Failure: `BAD_SPEC` for an unknown name, with a list of the known names, or for mistakes.
    """
    files = _files(settings)
    if name not in files:
        known = ", ".join(sorted(files)) or "none"
        raise Failure(
            Cause.BAD_SPEC,
            f"there is no spec {name!r} at this site",
            suggestion=f"There are: {known}.",
        )
    return load_spec(files[name])


def _files(settings: Settings) -> dict[str, Path]:
    """Files by name; if two have the same name, the file in the earlier folder counts."""
    folders = load_policy(settings).policy.rules(Channel.API).spec_folders
    found: dict[str, Path] = {}
    for folder in map(Path, roots_of(folders, settings)):
        for name in spec_names(folder):
            if _is_spec(file := folder / f"{name}.yaml"):
                found.setdefault(name, file)
    return found


def _is_spec(file: Path) -> bool:
    """Whether a file is meant as a spec, even with mistakes."""
    try:
        status = file.stat()
    except OSError:
        return False
    return _holds_spec(file, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=10_000)
def _holds_spec(file: Path, changed_ns: int, size: int) -> bool:  # noqa: ARG001  (both date it)
    """Cached by time and size, since a form is compared with its files every few seconds."""
    try:
        content = decode(read_small(file, LARGEST_TEXT))
    except (OSError, YamlError):
        return False
    return isinstance(content, dict) and content.keys() >= SPEC_KEYS and FLEET_KEY not in content
