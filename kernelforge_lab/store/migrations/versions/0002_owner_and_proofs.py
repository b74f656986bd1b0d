"""Who writes a run, and the library of proven kernels."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("runs", sa.Column("owner", sa.String(120), nullable=False, server_default=""))
    op.create_table(
        "proofs",
        sa.Column("region", sa.String(16), primary_key=True),
        sa.Column("target", sa.String(32), primary_key=True),
        sa.Column("device", sa.String(120), primary_key=True),
        sa.Column("kernel", sa.String(16), primary_key=True),
        sa.Column("speedup", sa.Float, nullable=False),
        sa.Column("found_at", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("proofs")
    op.drop_column("runs", "owner")
