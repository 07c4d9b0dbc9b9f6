"""Which commit a branch or tag stood for, kept for use without the hub."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from filelock import FileLock

REFS = "refs.json"
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""A full commit id, as Git writes it with SHA-1 or SHA-256."""

DEFAULT_BRANCH = "main"
"""The hub calls it so in every repository."""


class Refs:
    """The remembered revisions of one repository.

    Args:
        folder: Directory of the repository in the store.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def commit_of(self, revision: str) -> str | None:
        """Tell the commit of a revision without asking the hub, if it is known here."""
        if COMMIT.fullmatch(revision):
            return revision
        return self.all().get(revision or DEFAULT_BRANCH)

    def all(self) -> dict[str, str]:
        """Tell the commits by branch or tag."""
        try:
            refs = json.loads((self._folder / REFS).read_bytes())
        except (OSError, ValueError):
            return {}
        return {
            str(name): commit
            for name, commit in (refs.items() if isinstance(refs, dict) else ())
            if isinstance(commit, str) and COMMIT.fullmatch(commit)
        }

    def remember(self, revision: str, commit: str) -> None:
        """Keep which commit a branch or tag stands for; empty = the default branch."""
        name = revision or DEFAULT_BRANCH
        if COMMIT.fullmatch(name) or self.all().get(name) == commit:
            return
        with FileLock(self._folder / f".{REFS}.lock"):
            fresh = self._folder / f".{REFS}.new"
            fresh.write_text(json.dumps({**self.all(), name: commit}, indent=1, sort_keys=True))
            os.replace(fresh, self._folder / REFS)
