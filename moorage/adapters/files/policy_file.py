"""The site's policy: location and trust of its file, and paths resolved on this machine."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from moorage.adapters.files.safe_files import expanded
from moorage.adapters.files.specs import POLICY_FILE, invalid_file, load_file, load_fleet
from moorage.adapters.system.settings import Settings
from moorage.common.failures import Cause
from moorage.inventory.fleet import Fleet
from moorage.policy.request import Folders, Request, Submission
from moorage.policy.rules import EffectivePolicy, Policy
from moorage.spec import AdapterSpec, ModelSpec

POLICY_PATH = Path("deployments", POLICY_FILE)
PROJECT_FILE = "prefect.yaml"
STORE = "store"


def load_policy(settings: Settings) -> EffectivePolicy:
    """The policy in force on this machine; without a file, the default policy.

    Raises:
        InvalidFile: `BAD_SETTING` when the file cannot be read or trusted, or has mistakes. Then
            nothing is allowed.
    """
    if (path := find_policy(settings)) is None:
        return EffectivePolicy()
    _require_trusted(path)
    return EffectivePolicy(policy=load_file(path, Policy, Cause.BAD_SETTING), file=str(path))


def find_policy(settings: Settings) -> Path | None:
    """Absolute path of the policy file; the path of the setting is returned unchecked."""
    if settings.policy is not None:
        return settings.policy.expanduser().absolute()
    folders = (*_start_folders(), project_folder(settings))
    return next((found for one in folders if os.path.lexists(found := one / POLICY_PATH)), None)


def project_folder(settings: Settings) -> Path:
    """Base folder of a policy's relative paths.

    A worker runs each flow in an empty folder, but its `PWD` tells where the worker was started.
    """
    if settings.project is not None:
        return settings.project.expanduser().absolute()
    folders = list(_start_folders())
    return next((one for one in folders if (one / PROJECT_FILE).is_file()), folders[0])


def load_site_fleet(policy: EffectivePolicy, settings: Settings) -> Fleet:
    """The worker's fleet: the one in the policy's file (as `load_fleet`), else this machine."""
    if not policy.policy.fleet:
        return Fleet()
    return load_fleet(project_folder(settings) / expanded(policy.policy.fleet))


def request_of(
    spec: ModelSpec,
    fleet: Fleet,
    submission: Submission,
    policy: EffectivePolicy,
    settings: Settings,
) -> Request:
    """A request for the policy to check, with its folders and variables on this machine."""
    rules = policy.policy.rules(submission.channel)
    return Request(
        spec=spec,
        submission=submission,
        fleet=fleet,
        folders=folders_of(spec),
        roots=roots_of(rules.file_roots, settings),
        variables=frozenset(name for name in spec.secrets.values() if name in os.environ),
    )


def roots_of(entries: Iterable[str], settings: Settings) -> tuple[str, ...]:
    """Folders that a rule names, links resolved; `store` stands for the stores in the home."""
    folders: list[Path] = []
    for entry in entries:
        if entry == STORE:
            folders += settings.models, settings.adapters
        else:
            folders.append(project_folder(settings) / expanded(entry))
    return tuple(map(os.path.realpath, folders))


def folders_of(spec: ModelSpec) -> Folders:
    """The `file://` sources of a spec, by field, links resolved."""
    sources = [("source", spec.source)]
    sources += [(f"lora[{index}].source", one.source) for index, one in enumerate(spec.lora)]
    if spec.speculative:
        sources.append(("speculative.model", spec.speculative.model or ""))
    return _folders(sources)


def folders_of_adapter(adapter: AdapterSpec) -> Folders:
    """The `file://` source of an adapter, link resolved."""
    return _folders([("adapter.source", adapter.source)])


def _folders(sources: Iterable[tuple[str, str]]) -> Folders:
    return tuple(
        (field, os.path.realpath(source.removeprefix("file://")))
        for field, source in sources
        if source.startswith("file://")
    )


def _start_folders() -> Iterator[Path]:
    """The current folder, then the folder of the shell that started this process."""
    yield Path.cwd()
    if (shell := Path(os.environ.get("PWD", ""))).is_absolute() and shell.is_dir():
        yield shell


def _require_trusted(path: Path) -> None:
    """Refuse a file that other users could change, directly or through its parent folders."""
    try:
        real = path.resolve(strict=True)
        if not real.is_file():
            raise invalid_file(Cause.BAD_SETTING, path, "is no file")
        for place in (real, *real.parents):
            if why := _untrusted(place, owned=place in (real, real.parent)):
                why = f"{place} {why}; the policy is not trusted"
                raise invalid_file(Cause.BAD_SETTING, path, why)
    except (OSError, RuntimeError) as error:
        raise invalid_file(Cause.BAD_SETTING, path, f"cannot be read: {error}") from error


def _untrusted(place: Path, *, owned: bool) -> str:
    found = place.stat()
    if owned and found.st_uid not in (0, os.geteuid()):
        return "belongs to another user than root and this one"
    # In a sticky folder such as /tmp, users cannot replace the files of others.
    shared = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not shared:
        return "can be written by others than its owner (`chmod go-w`)"
    return ""
