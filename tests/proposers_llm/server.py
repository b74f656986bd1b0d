"""A real HTTP server on loopback that speaks the chat-completions and responses APIs, and every fault."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Script = Callable[["Exchange"], None]


@dataclass
class Exchange:
    """One request, and the means to answer it badly."""

    handler: BaseHTTPRequestHandler
    body: dict[str, Any]
    number: int

    @property
    def is_chat(self) -> bool:
        return self.handler.path.endswith("/chat/completions")

    def status(self, code: int, body: Any = None, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body if body is not None else {}).encode()
        self.handler.send_response(code)
        self.handler.send_header("content-type", "application/json")
        self.handler.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def open_stream(self) -> None:
        self.handler.send_response(200)
        self.handler.send_header("content-type", "text/event-stream")
        self.handler.end_headers()

    def raw(self, data: bytes) -> None:
        self.handler.wfile.write(data)
        self.handler.wfile.flush()

    def event(self, data: Any) -> None:
        name = f"event: {data['type']}\n" if isinstance(data, dict) and "type" in data else ""
        self.raw(f"{name}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())

    def chunk(self, delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> None:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}] if delta is not None else []
        self.event(
            {
                "id": "c",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": choices,
                **more,
            }
        )


def say(
    text: str,
    *,
    finish: str = "stop",
    usage: dict[str, Any] | None = None,
    parts: int = 3,
    no_usage: bool = False,
) -> Script:
    """A proper streamed reply on either API."""

    def script(exchange: Exchange) -> None:
        exchange.open_stream()
        pieces = _pieces(text, parts)
        counts = usage or {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200}
        if exchange.is_chat:
            for piece in pieces:
                exchange.chunk({"content": piece})
            exchange.chunk({}, finish)
            if not no_usage:
                exchange.chunk(None, usage=counts)
            exchange.event("[DONE]")
            return
        for piece in pieces:
            exchange.event(
                {
                    "type": "response.output_text.delta", "delta": piece, "content_index": 0, "item_id": "i",
                    "output_index": 0, "sequence_number": 1, "logprobs": [],
                }
            )  # fmt: skip
        exchange.event(response_end(counts, finish))

    return script


def response_end(counts: dict[str, Any], finish: str = "stop", error: str = "") -> dict[str, Any]:
    kind = "failed" if error else "completed" if finish == "stop" else "incomplete"
    reason = {"length": "max_output_tokens"}.get(finish, finish)
    return {
        "type": f"response.{kind}",
        "sequence_number": 9,
        "response": {
            "id": "r", "object": "response", "created_at": 1, "model": "m", "output": [], "status": kind,
            "parallel_tool_calls": False, "tool_choice": "auto", "tools": [],
            "error": {"code": "server_error", "message": error} if error else None,
            "incomplete_details": {"reason": reason} if kind == "incomplete" else None,
            "usage": {
                "input_tokens": counts["prompt_tokens"], "output_tokens": counts["completion_tokens"],
                "total_tokens": counts["total_tokens"],
                "input_tokens_details": {"cached_tokens": counts.get("cached", 0), "cache_write_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": counts.get("reasoning", 0)},
            },
        },
    }  # fmt: skip


def fail(code: int, message: str = "no", kind: str = "error", **headers: str) -> Script:
    return lambda exchange: exchange.status(
        code, {"error": {"message": message, "type": kind, "code": kind}}, **headers
    )


def stream(*events: Any, close: bool = True) -> Script:
    """Events as they are: dicts as JSON, strings as they stand, bytes without any framing."""

    def script(exchange: Exchange) -> None:
        exchange.open_stream()
        for item in events:
            if isinstance(item, bytes):
                exchange.raw(item)
            else:
                exchange.event(item)
        if not close:
            time.sleep(30)

    return script


def hang(after: int = 0) -> Script:
    """Silence, after some chunks of text."""

    def script(exchange: Exchange) -> None:
        if after:
            exchange.open_stream()
            for _ in range(after):
                exchange.chunk({"content": "thinking "})
        exchange.handler.server.released.wait(30)  # type: ignore[attr-defined]

    return script


def _pieces(text: str, parts: int) -> Iterable[str]:
    size = max(1, -(-len(text) // parts))
    return [text[i : i + size] for i in range(0, len(text), size)] or [""]


@dataclass
class Server:
    """Answers the n-th request with the n-th script, the last one again and again."""

    scripts: list[Script]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["content-length"]))
                if not data:
                    return  # the caller was stopped while it sent
                body = json.loads(data)
                outer.requests.append(body)
                outer.headers.append({k.lower(): v for k, v in self.headers.items()})
                outer.arrived.set()
                number = len(outer.requests)
                script = outer.scripts[min(number, len(outer.scripts)) - 1]
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    script(Exchange(self, body, number))
                self.close_connection = True

            def log_message(self, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.released = threading.Event()  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __exit__(self, *_: object) -> None:
        self._http.released.set()  # type: ignore[attr-defined]
        self._http.shutdown()
        self._http.server_close()
