"""What an exception of the SDK or the network means, and whether trying again can help."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from ..outcome import Outcome

# How providers word an empty account (OpenAI, DeepSeek, OpenRouter, Anthropic).
_NO_BALANCE: Final = (
    "insufficient_quota", "insufficient balance", "insufficient credit", "credit balance",
    "exceeded your current quota", "billing", "payment required", "out of credits",
)  # fmt: skip
_TOO_LONG: Final = (
    "context_length", "context length", "context window", "maximum context", "too many tokens",
)  # fmt: skip
_REASON_CHARS: Final = 300


@dataclass(frozen=True)
class Failure:
    """``wait_s``: what the server asked to wait before another try (None: our own back-off)."""

    outcome: Outcome
    reason: str
    may_retry: bool = False
    wait_s: float | None = None
    parameter: str = ""  # of a bad request: the parameter that this server does not know


class StreamError(Exception):
    """The endpoint reported a failure inside its stream."""


def classify(error: BaseException) -> Failure:
    """Never raises; anything unknown is a broken connection or a broken answer."""
    import openai

    text = _words(error)
    if isinstance(error, StreamError):
        return _by_words(text, Failure(Outcome.SERVER_ERROR, text))
    if isinstance(error, (openai.APITimeoutError, TimeoutError)):
        return Failure(Outcome.TIMED_OUT, "the endpoint did not answer in time", may_retry=True)
    if isinstance(error, openai.APIStatusError):
        return _by_status(error, text)
    if isinstance(error, openai.APIConnectionError):
        cause = f": {error.__cause__}" if error.__cause__ else ""
        return Failure(Outcome.DISCONNECTED, f"no connection to the endpoint{cause}", may_retry=True)
    if isinstance(error, openai.APIError):
        # An error object inside the stream, with status 200.
        return _by_words(text, Failure(Outcome.SERVER_ERROR, text))
    if isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return Failure(Outcome.BAD_RESPONSE, "the endpoint sent something that is not JSON")
    if isinstance(error, (AttributeError, KeyError, TypeError, IndexError, ValueError)):
        return Failure(Outcome.BAD_RESPONSE, f"the endpoint's answer does not follow the API: {error!r}")
    name = type(error).__name__
    if "Timeout" in name:
        return Failure(Outcome.TIMED_OUT, "the endpoint fell silent", may_retry=True)
    return Failure(Outcome.DISCONNECTED, f"the connection broke: {name}", may_retry=True)


def _by_status(error: Any, text: str) -> Failure:
    status, wait_s = error.status_code, _retry_after_s(error.response.headers)
    if status == 402 or (status in (400, 403, 429) and _has(text, _NO_BALANCE)):
        return Failure(Outcome.NO_BALANCE, f"the account has no balance: {text}")
    if status in (401, 403):
        return Failure(Outcome.UNAUTHORISED, f"the endpoint refused the key ({status}): {text}")
    if status == 404:
        return Failure(Outcome.NOT_FOUND, f"the endpoint knows no such model or path: {text}")
    if status == 429:
        return Failure(Outcome.RATE_LIMITED, f"rate limit: {text}", may_retry=True, wait_s=wait_s)
    if status == 413 or _has(text, _TOO_LONG):
        return Failure(Outcome.CONTEXT_TOO_LONG, f"the prompt is too long for the model: {text}")
    if status in (408, 409) or status >= 500:
        return Failure(
            Outcome.SERVER_ERROR, f"the endpoint failed ({status}): {text}", may_retry=True, wait_s=wait_s
        )
    reason = f"the endpoint refused the request ({status}): {text}"
    return Failure(Outcome.BAD_REQUEST, reason, parameter=_parameter(text))


def _by_words(text: str, otherwise: Failure) -> Failure:
    if _has(text, _NO_BALANCE):
        return Failure(Outcome.NO_BALANCE, f"the account has no balance: {text}")
    if _has(text, _TOO_LONG):
        return Failure(Outcome.CONTEXT_TOO_LONG, f"the prompt is too long for the model: {text}")
    if _has(text, ("rate limit", "rate_limit", "overloaded")):
        return Failure(Outcome.RATE_LIMITED, f"rate limit: {text}", may_retry=True)
    return otherwise


# Parameters that not every compatible server takes; without them the call means the same.
OPTIONAL: Final = ("max_completion_tokens", "stream_options", "reasoning_effort", "reasoning", "max_tokens")


def _parameter(text: str) -> str:
    return next((name for name in OPTIONAL if name in text), "")


def _has(text: str, words: tuple[str, ...]) -> bool:
    small = text.lower()
    return any(word in small for word in words)


def _words(error: BaseException) -> str:
    """The server's own message, with its code: one line, trimmed."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(inner, dict):
        parts = [str(inner[key]) for key in ("code", "type", "message") if inner.get(key)]
        text = ": ".join(dict.fromkeys(parts))
    else:
        text = str(inner or getattr(error, "message", "") or error)
    return " ".join(text.split())[:_REASON_CHARS]


def _retry_after_s(headers: Any) -> float | None:
    """``retry-after-ms`` or ``retry-after`` in seconds; a date or nonsense is None."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            value = float(headers.get(name, "")) * scale
        except (TypeError, ValueError):
            continue
        if 0 <= value < 1e6:
            return value
    return None
