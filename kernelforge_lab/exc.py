"""Every exception a person can meet, each with a hint about the next step."""

from __future__ import annotations


class ForgeError(Exception):
    """Base of all errors of kernelforge-lab: one sentence what is wrong, one what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip() if hint else message)
        self.message = message
        self.hint = hint

    def _render_traceback_(self) -> list[str]:
        # IPython shows this instead of a stack of our frames: the person cannot act on those.
        return [f"{type(self).__name__}: {self}"]


class KernelSourceError(ForgeError):
    """A ``// forge:`` line or expression that does not follow the format."""

    def __init__(self, line: int, reason: str, expected: str = "") -> None:
        super().__init__(f"line {line}: {reason}", f"(expected {expected})" if expected else "")
        self.line = line
        self.reason = reason
        self.expected = expected


class CompileError(ForgeError):
    """The compiler refused a kernel; ``message`` holds its trimmed words."""


class NoCompilerError(ForgeError):
    """No usable compiler on PATH."""


class NoDeviceError(ForgeError):
    """The device a target runs on is not there, or cannot be reached."""


class CaptureError(ForgeError):
    """Nothing could be captured from what was given."""


class ProblemError(ForgeError):
    """A problem file or an argument that cannot be used."""


class WorkerDied(ForgeError):
    """A judge worker ended while it was busy."""


class StoreError(ForgeError):
    """The run store could not be read or written; the run goes on in memory."""


class GuardError(ForgeError):
    """With ``strict=True``: an installed kernel could not serve a call."""
