"""A run's winners as a folder or wheel that works without kernelforge-lab."""

from .folder import export

__all__ = ["export"]
