"""The labels of what moorage starts, by which a ledger finds its own."""

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
