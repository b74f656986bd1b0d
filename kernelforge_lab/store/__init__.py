"""What is kept of runs: every event, in any database SQLAlchemy knows."""

from .database import Store, StoredRun, default_url

__all__ = ["Store", "StoredRun", "default_url"]
