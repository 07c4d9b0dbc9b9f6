"""The specs of the site: files in the folders that the policy names, chosen by name."""

from pathlib import Path

from moorage.adapters.files.policy_file import load_policy, roots_of
from moorage.adapters.files.specs import load_spec, spec_names
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause, Failure
from moorage.policy.request import Channel
from moorage.spec import ModelSpec


def site_spec_names(settings: Settings) -> list[str]:
    """What may be chosen: names of files without `.yaml`, in `spec_folders` of the API's rules.

    Raises:
        InvalidFile: The policy cannot be read or trusted.
    """
    return sorted(_files(settings))


def load_site_spec(name: str, settings: Settings) -> ModelSpec:
    """Read the spec of that name.

    Raises:
        Failure: `BAD_SPEC` for a name that is none of them, with all that are, or for mistakes.
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
    """The files by name; of two of one name the one of the earlier folder."""
    folders = load_policy(settings).policy.rules(Channel.API).spec_folders
    found: dict[str, Path] = {}
    for folder in map(Path, roots_of(folders, settings)):
        for name in spec_names(folder):
            found.setdefault(name, folder / f"{name}.yaml")
    return found
