"""The names by which a ledger finds its own: labels of what it starts, and its generated keys."""

LABEL_LEDGER = "moorage.ledger"
LABEL_MODEL = "moorage.model"
LABEL_RELEASE = "moorage.release"
LABEL_ROLE = "moorage.role"
LABEL_REPLICA = "moorage.replica"
LABEL_HELPER = "moorage.helper"
"""On every helper container, with its purpose."""


def labels_of(ledger: str, model: str, release: str, role: str, replica: int) -> dict[str, str]:
    """Labels by which a container is known as one of this ledger's."""
    return {
        LABEL_LEDGER: ledger,
        LABEL_MODEL: model,
        LABEL_RELEASE: release,
        LABEL_ROLE: role,
        LABEL_REPLICA: str(replica),
    }


KEY_PREFIX = "moorage-key-"
"""Prefix of the names of generated keys; they are names of Prefect blocks, too."""


def is_generated(name: str) -> bool:
    """Whether a secret is a key that moorage generates."""
    return name.startswith(KEY_PREFIX)
