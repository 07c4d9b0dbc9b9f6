"""How the names of generated API keys begin."""

PREFIX = "moorage-key-"
"""Prefix of the names of generated keys; they are names of Prefect blocks, too."""


def is_generated(name: str) -> bool:
    """Whether a secret is a key that moorage generates."""
    return name.startswith(PREFIX)
