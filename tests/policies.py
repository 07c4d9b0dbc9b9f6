"""Policies for tests."""

from __future__ import annotations

from pathlib import Path

OPEN = """\
api:
  registries: ["*"]
  commands: true
  packages: true
  args: ["*"]
  env: ["*"]
  variables: ["*"]
  privileged: true
  host_network: true
  ipc: [private, shareable, host]
  capabilities: ["*"]
  groups: ["*"]
  file_roots: [/]
  trust_remote_code: true
  own_fleet: true
  spec_folders: [/, {folder}/deployments]
"""
"""Allows requests through the API everything that the command line may do."""


def open_policy(path: Path) -> Path:
    """Write a policy that allows everything, for tests about something else."""
    return written_policy(path, OPEN.replace("{folder}", str(path.parent)))


def written_policy(path: Path, text: str) -> Path:
    """Write a policy with permissions that make it trusted, whatever the umask is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path
