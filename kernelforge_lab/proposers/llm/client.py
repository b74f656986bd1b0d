"""One call of an OpenAI-compatible endpoint, streamed, so that it can be stopped at any moment.

Each call runs its own short event loop in a thread of its own (a notebook's main thread already has a loop
running): cancelling the task closes the connection wherever it waits (connecting, waiting for the first
byte, between two chunks, in a back-off).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import time
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Protocol

from ..base import Cancel, Messages
from ..outcome import Outcome
from .errors import Failure, StreamError, classify
from .pricing import Usage, tokens_of
from .settings import OPENAI_URL, Settings

# More than any kernel file; a server that never stops is stopped here.
_TEXT_CHARS_MAX: Final = 400_000
_CONNECT_S: Final = 10.0
_BACK_OFF_S: Final = 0.5
_WAIT_MOST_S: Final = 60.0


@dataclass(frozen=True)
class Reply:
    """What came back. ``finish`` is the API's own word (stop, length, content_filter, incomplete …).

    ``outcome`` KERNEL means only that the call itself succeeded; ``text`` may be partial otherwise.
    """

    text: str = ""
    finish: str = ""
    refusal: str = ""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    outcome: Outcome = Outcome.KERNEL
    reason: str = ""


class Endpoint(Protocol):
    """What the proposer needs of a client."""

    def complete(self, model: str, messages: Messages, tokens: int, cancel: Cancel) -> Reply:
        """One reply of at most ``tokens`` output tokens. Never raises."""


class Client:
    """Calls the endpoint of ``settings``. What a server turns out not to know is left out from then on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._without: set[str] = set()
        if settings.base_url != OPENAI_URL:
            # The compatible servers know the older name; OpenAI's newer models only the newer one.
            self._without.add("max_completion_tokens")

    def complete(self, model: str, messages: Messages, tokens: int, cancel: Cancel) -> Reply:
        started = time.monotonic()
        try:
            reply = _apart(self._cancellable(model, messages, tokens, cancel))
        except Exception as error:  # noqa: BLE001 - whatever a server sends costs its call, not the run
            failure = classify(error)
            reply = Reply(outcome=failure.outcome, reason=failure.reason)
        key = self._settings.key
        return replace(
            reply,
            text=key.redact(reply.text) if key and key.reveal() in reply.text else reply.text,
            reason=key.redact(reply.reason),
            seconds=time.monotonic() - started,
        )

    async def _cancellable(self, model: str, messages: Messages, tokens: int, cancel: Cancel) -> Reply:
        loop = asyncio.get_running_loop()
        draft = _Draft()
        task = asyncio.ensure_future(self._with_retries(model, messages, tokens, draft))

        def stop() -> None:
            # The loop is gone when the call ended at this very moment.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)

        forget = cancel.on(stop)
        try:
            return await asyncio.wait_for(task, self._settings.timeout_s)
        except asyncio.CancelledError:
            return draft.reply(messages, Failure(Outcome.CANCELLED, "stopped"))
        except TimeoutError:
            reason = f"no complete reply within {self._settings.timeout_s:g} s"
            return draft.reply(messages, Failure(Outcome.TIMED_OUT, reason))
        finally:
            forget()

    async def _with_retries(self, model: str, messages: Messages, tokens: int, draft: _Draft) -> Reply:
        attempt = 0
        while True:
            try:
                async with self._sdk() as sdk:
                    await self._stream(sdk, model, messages, tokens, draft)
                return draft.reply(messages, _ended_early(draft))
            except Exception as error:  # noqa: BLE001 - classified, and returned as data
                failure = classify(error)
            if failure.parameter and failure.parameter not in self._without:
                self._without.add(failure.parameter)
                continue
            attempt += 1
            wait_s = _BACK_OFF_S * 2**attempt if failure.wait_s is None else failure.wait_s
            # Text that was streamed is paid for: another try would pay for it again.
            is_last = attempt >= self._settings.attempts or wait_s > _WAIT_MOST_S
            if not failure.may_retry or draft.parts or is_last:
                return draft.reply(messages, failure)
            await asyncio.sleep(wait_s)

    def _sdk(self) -> Any:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

        settings = self._settings
        return AsyncOpenAI(
            api_key=settings.key.reveal() or "local",
            base_url=settings.base_url,
            timeout=Timeout(settings.idle_s, connect=min(_CONNECT_S, settings.idle_s)),
            max_retries=0,
            http_client=DefaultAsyncHttpxClient(verify=_certificates()),
        )

    async def _stream(self, sdk: Any, model: str, messages: Messages, tokens: int, draft: _Draft) -> None:
        if self._settings.api == "responses":
            stream = await sdk.responses.create(**self._responses(model, messages, tokens))
            await _read_responses(stream, draft)
        else:
            stream = await sdk.chat.completions.create(**self._chat(model, messages, tokens))
            await _read_chat(stream, draft)

    def _chat(self, model: str, messages: Messages, tokens: int) -> dict[str, Any]:
        wanted: dict[str, Any] = {"stream_options": {"include_usage": True}}
        wanted |= {"max_completion_tokens": tokens}
        if "max_completion_tokens" in self._without:
            wanted["max_tokens"] = tokens
        if self._settings.effort:
            wanted["reasoning_effort"] = self._settings.effort
        said = [{"role": role, "content": text} for role, text in messages]
        return {"model": model, "messages": said, "stream": True} | self._known(wanted)

    def _responses(self, model: str, messages: Messages, tokens: int) -> dict[str, Any]:
        wanted: dict[str, Any] = {"max_output_tokens": tokens, "store": False}
        if self._settings.effort:
            wanted["reasoning"] = {"effort": self._settings.effort}
        said = [{"role": role, "content": text} for role, text in messages]
        return {"model": model, "input": said, "stream": True} | self._known(wanted)

    def _known(self, wanted: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in wanted.items() if name not in self._without}


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Read once: it takes longer (0.1 s) than the rest of making a client."""
    import certifi

    return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())


@dataclass
class _Draft:
    """A reply as it comes in."""

    parts: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    thought_chars: int = 0
    finish: str = ""
    usage: Usage | None = None
    chars: int = 0

    def add(self, text: str | None) -> bool:
        """False when there is more text than anybody wants."""
        if text:
            self.parts.append(text)
            self.chars += len(text)
        return self.chars <= _TEXT_CHARS_MAX

    def reply(self, messages: Messages, failure: Failure | None) -> Reply:
        text = "".join(self.parts)
        usage = self.usage
        if usage is None and (text or self.thought_chars or failure is None or _may_have_cost(failure)):
            thought = int(self.thought_chars / 3)
            sent = tokens_of("".join(content for _, content in messages))
            usage = Usage(sent, tokens_of(text) + thought, reasoning=thought, is_estimate=True)
        reply = Reply(text, self.finish, "".join(self.refusal), usage or Usage())
        return replace(reply, outcome=failure.outcome, reason=failure.reason) if failure else reply


def _may_have_cost(failure: Failure) -> bool:
    """Whether the server may have worked (and charge) although nothing arrived."""
    return failure.outcome in (Outcome.CANCELLED, Outcome.TIMED_OUT)


def _ended_early(draft: _Draft) -> Failure | None:
    if draft.chars > _TEXT_CHARS_MAX or draft.finish or draft.refusal:
        return None
    if not draft.parts:
        return Failure(Outcome.BAD_RESPONSE, "the endpoint's stream had no answer in it")
    return Failure(Outcome.DISCONNECTED, "the stream ended in the middle of the reply")


async def _read_chat(stream: AsyncIterator[Any], draft: _Draft) -> None:
    async for chunk in stream:
        if getattr(chunk, "usage", None):
            draft.usage = _chat_usage(chunk.usage)
        for choice in (getattr(chunk, "choices", None) or [])[:1]:
            delta = choice.delta
            draft.finish = choice.finish_reason or draft.finish
            if delta is None:
                continue
            draft.refusal += [delta.refusal] if getattr(delta, "refusal", None) else []
            for name in ("reasoning_content", "reasoning"):
                draft.thought_chars += len(str(getattr(delta, name, None) or ""))
            if not draft.add(delta.content):
                return


async def _read_responses(stream: AsyncIterator[Any], draft: _Draft) -> None:
    async for event in stream:
        kind = getattr(event, "type", "")
        if kind == "response.output_text.delta" and not draft.add(event.delta):
            return
        if kind == "response.refusal.delta":
            draft.refusal.append(event.delta)
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            response = event.response
            if response.usage:
                draft.usage = _responses_usage(response.usage)
            if kind == "response.failed":
                raise StreamError(str(getattr(response.error, "message", "the response failed")))
            details = getattr(response, "incomplete_details", None)
            why = getattr(details, "reason", "") if details else ""
            draft.finish = {"max_output_tokens": "length"}.get(why, why) or "stop"
        elif kind == "error":
            raise StreamError(str(event.message))


def _chat_usage(usage: Any) -> Usage:
    prompt = getattr(usage, "prompt_tokens_details", None)
    completion = getattr(usage, "completion_tokens_details", None)
    return Usage(
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        _count(prompt, "cached_tokens"),
        _count(completion, "reasoning_tokens"),
    )


def _responses_usage(usage: Any) -> Usage:
    return Usage(
        _count(usage, "input_tokens"),
        _count(usage, "output_tokens"),
        _count(getattr(usage, "input_tokens_details", None), "cached_tokens"),
        _count(getattr(usage, "output_tokens_details", None), "reasoning_tokens"),
    )


def _count(holder: Any, name: str) -> int:
    """A token count; servers send null, floats and, once in a while, nonsense."""
    value = getattr(holder, name, 0) if holder is not None else 0
    return max(int(value), 0) if isinstance(value, (int, float)) and value == value else 0


def _apart(call: Coroutine[Any, Any, Reply]) -> Reply:
    """Run ``call`` on a loop of its own: a notebook's thread already has one running."""
    with ThreadPoolExecutor(1, thread_name_prefix="kernelforge-llm") as thread:
        return thread.submit(asyncio.run, call).result()
