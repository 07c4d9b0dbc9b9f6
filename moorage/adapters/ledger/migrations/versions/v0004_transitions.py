"""The life of a release: allowed transitions only, each with its number and its flow run."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

ALLOWED = {
    "pending": ("analyzing", "scheduled", "error"),
    "analyzing": ("scheduled", "error"),
    "scheduled": ("downloading", "starting", "error"),
    "downloading": ("starting", "error"),
    "starting": ("running", "error"),
    "running": ("unreachable", "stopping", "error"),
    "unreachable": ("running", "stopping", "error"),
    "stopping": ("stopped", "superseded", "running", "error"),
}

TOLD = """
    SELECT 1 FROM transitions
    WHERE transitions.release = NEW.id
      AND transitions.from_state = OLD.state AND transitions.to_state = NEW.state
      AND transitions.sequence = (
        SELECT max(newest.sequence) FROM transitions AS newest WHERE newest.release = NEW.id
      )
"""
"""The newest transition of a release tells of this very change of its state."""

SQLITE = (
    """
    CREATE TRIGGER releases_begin BEFORE INSERT ON releases
    WHEN NEW.state <> 'pending'
    BEGIN SELECT RAISE(ABORT, 'a release begins as pending'); END
    """,
    f"""
    CREATE TRIGGER releases_move BEFORE UPDATE OF state ON releases
    WHEN NEW.state <> OLD.state AND NOT EXISTS ({TOLD})
    BEGIN SELECT RAISE(ABORT, 'no transition tells of this change of state'); END
    """,
)

POSTGRESQL = (
    f"""
    CREATE FUNCTION moorage_release_state() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'INSERT' THEN
        IF NEW.state <> 'pending' THEN
          RAISE EXCEPTION 'a release begins as pending';
        END IF;
      ELSIF NEW.state <> OLD.state AND NOT EXISTS ({TOLD}) THEN
        RAISE EXCEPTION 'no transition tells of this change of state';
      END IF;
      RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER releases_state BEFORE INSERT OR UPDATE OF state ON releases
    FOR EACH ROW EXECUTE FUNCTION moorage_release_state()
    """,
)


def upgrade() -> None:
    _allow()
    _complete_the_log()
    _one_serving()
    for statement in POSTGRESQL if op.get_bind().dialect.name == "postgresql" else SQLITE:
        op.execute(statement)


def _allow() -> None:
    table = op.create_table(
        "allowed_transitions",
        sa.Column("from_state", sa.String(20), nullable=False),
        sa.Column("to_state", sa.String(20), nullable=False),
        sa.PrimaryKeyConstraint("from_state", "to_state", name="pk_allowed_transitions"),
    )
    pairs = [(before, after) for before, states in ALLOWED.items() for after in states]
    op.bulk_insert(table, [{"from_state": one, "to_state": other} for one, other in pairs])


def _complete_the_log() -> None:
    """What was logged before has its order, but nobody wrote down which flow run it was."""
    op.add_column("transitions", sa.Column("sequence", sa.Integer, nullable=True))
    op.add_column("transitions", sa.Column("flow_run_id", sa.String(64), nullable=True))
    op.execute(
        """
        UPDATE transitions SET flow_run_id = '', sequence = (
          SELECT count(*) FROM transitions AS earlier
          WHERE earlier.release = transitions.release AND earlier.id <= transitions.id
        )
        """
    )
    with op.batch_alter_table("transitions") as batch:
        batch.alter_column("sequence", existing_type=sa.Integer, nullable=False)
        batch.alter_column("flow_run_id", existing_type=sa.String(64), nullable=False)
        batch.create_unique_constraint("uq_transitions_release_sequence", ["release", "sequence"])
        pair = ["from_state", "to_state"]
        batch.create_foreign_key("fk_transitions_allowed", "allowed_transitions", pair, pair)


def _one_serving() -> None:
    name, where = "uq_releases_one_running", sa.text("state IN ('running', 'unreachable')")
    op.drop_index(name, "releases")
    op.create_index(
        name, "releases", ["model"], unique=True, sqlite_where=where, postgresql_where=where
    )
