"""What the lab's panel is told about stored runs, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tornado import httpserver, netutil, web

from kernelforge_lab.notebook import wire
from kernelforge_lab.notebook.summary import Summary
from kernelforge_lab.server.handlers import routes
from kernelforge_lab.server.stored import StoredRuns
from kernelforge_lab.store import Store
from tests.notebook.fakes import fixture_events

RUN = "r-20261201-gemma4"


@pytest.fixture
def store(tmp_path: Any) -> Store:
    store = Store(f"sqlite:///{tmp_path / 'runs.sqlite'}")
    for event in fixture_events():
        store.append(RUN, event)
    return store


class Client:
    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, method: str = "GET") -> tuple[int, Any]:
        request = urllib.request.Request(f"{self.url}/base/kernelforge/{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, error.reason


@pytest.fixture
def client(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    # Who may ask is jupyter_server's affair and tested there; here everybody is known.
    monkeypatch.setattr("jupyter_server.base.handlers.APIHandler.prepare", lambda self: None)
    monkeypatch.setattr(
        "jupyter_server.base.handlers.APIHandler.get_current_user", lambda self: "somebody", raising=False
    )
    monkeypatch.setattr("jupyter_server.base.handlers.APIHandler.current_user", "somebody", raising=False)
    monkeypatch.setattr("jupyter_server.base.handlers.APIHandler.check_xsrf_cookie", lambda self: None)
    monkeypatch.setattr("jupyter_server.base.handlers.APIHandler.set_default_headers", lambda self: None)
    monkeypatch.setattr(
        "jupyter_server.base.handlers.APIHandler.write_error",
        lambda self, status, **_: self.finish("{}"),
    )
    monkeypatch.setattr("jupyter_server.base.handlers.APIHandler.finish", web.RequestHandler.finish)
    ready: dict[str, Any] = {}
    started, stop = threading.Event(), asyncio.Event()

    def serve() -> None:
        async def main() -> None:
            application = web.Application(routes("/base/", StoredRuns(store)))
            sockets = netutil.bind_sockets(0, "127.0.0.1")
            server = httpserver.HTTPServer(application)
            server.add_sockets(sockets)
            ready.update(port=sockets[0].getsockname()[1], loop=asyncio.get_running_loop())
            started.set()
            await stop.wait()
            server.stop()

        asyncio.run(main())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert started.wait(10)
    yield Client(f"http://127.0.0.1:{ready['port']}")
    ready["loop"].call_soon_threadsafe(stop.set)
    thread.join(10)


def test_a_line_says_how_good_and_how_much(client: Client) -> None:
    status, (row,) = client.ask("runs")
    assert status == 200
    assert (row["id"], row["title"], row["state"]) == (RUN, "gemma4 (small)", "finished")
    assert row["best"] == "1.34× (1.31–1.37)" and row["judged"] == 40 and row["spent_usd"] == 0.12


def test_a_view_gets_the_whole_run_and_then_only_what_is_new(client: Client) -> None:
    events = fixture_events()
    _, batch = client.ask(f"runs/{RUN}")
    assert Summary(batch["events"]).as_json() == Summary(events).as_json()
    _, rest = client.ask(f"runs/{RUN}?after={len(events) - 3}")
    assert (rest["from"], rest["to"], len(rest["events"])) == (len(events) - 3, len(events), 3)


def test_what_was_too_long_for_the_batch_is_there_for_the_asking(client: Client, store: Store) -> None:
    called = next(e for e in fixture_events() if e["kind"] == "model_called")
    long = {**called, "prompt": "x" * (wire.INLINE_SOURCE_CHARS + 1), "seq": len(fixture_events()) + 1}
    store.append(RUN, long)
    _, batch = client.ask(f"runs/{RUN}")
    assert (
        batch["events"][-1]["prompt"] == "" and batch["events"][-1]["text_chars"] > wire.INLINE_SOURCE_CHARS
    )
    _, answer = client.ask(f"runs/{RUN}/nodes/{called['node']}/calls")
    assert answer["calls"][-1]["prompt"] == long["prompt"]
    _, answer = client.ask(f"runs/{RUN}/nodes/{called['node']}/source")
    assert "forge: target cpu" in answer["source"]


@pytest.mark.parametrize("suffix, begins", [("html", "<!doctype html>"), ("md", "# gemma4"), ("ipynb", "{")])
def test_reports_come_from_the_store(client: Client, suffix: str, begins: str) -> None:
    status, answer = client.ask(f"runs/{RUN}/report?format={suffix}")
    assert status == 200 and answer["text"].startswith(begins)


def test_a_deleted_run_is_gone(client: Client) -> None:
    assert client.ask(f"runs/{RUN}", "DELETE")[0] == 204
    assert client.ask("runs") == (200, [])
    assert client.ask(f"runs/{RUN}", "DELETE")[0] == 404


@pytest.mark.parametrize(
    "path, code",
    [
        ("runs/nothing", 404),
        ("runs/nothing/report", 404),
        (f"runs/{RUN}/report?format=pdf", 404),
        (f"runs/{RUN}?after=x", 400),
        (f"runs/{RUN}/nodes/4711/source", 404),
        ("runs/" + urllib.parse.quote("../../x", safe=""), 404),
    ],
)
def test_nonsense_is_refused(client: Client, path: str, code: int) -> None:
    assert client.ask(path)[0] == code


def test_a_running_run_is_folded_on_not_anew(store: Store) -> None:
    runs = StoredRuns(store)
    events = fixture_events()
    for event in events[:-1]:
        store.append("running", event)
    (row,) = [r for r in runs.rows() if r["id"] == "running"]
    assert row["state"] != "finished"
    store.append("running", events[-1])
    (row,) = [r for r in runs.rows() if r["id"] == "running"]
    assert row["best"] == "1.34× (1.31–1.37)" and row["state"] == "finished"
