"""The labels of what moorage starts, by which a ledger finds its own."""

LABEL_LEDGER = "moorage.ledger"
LABEL_MODEL = "moorage.model"
LABEL_RELEASE = "moorage.release"
LABEL_ROLE = "moorage.role"
LABEL_REPLICA = "moorage.replica"
LABEL_HELPER = "moorage.helper"
"""On every helper container, with its purpose."""
