"""The routes. Work happens in a thread: a long report must not hold up the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join
from tornado import web

from ..exc import ForgeError
from .stored import StoredRuns

T = TypeVar("T")


class _Handler(APIHandler):
    runs: StoredRuns

    def initialize(self, runs: StoredRuns) -> None:
        self.runs = runs

    async def ask(self, act: Callable[[], T]) -> T:
        """Run ``act`` in a thread; what went wrong with the store or the request is said in one line."""
        try:
            return await asyncio.to_thread(act)
        except ForgeError as error:
            raise web.HTTPError(404, reason=" ".join(str(error).split())[:300]) from error

    def say(self, data: Any) -> None:
        self.finish(json.dumps(data, ensure_ascii=False, separators=(",", ":")))

    def number(self, name: str) -> int:
        text = self.get_query_argument(name, "0")
        if not text.isdecimal() or len(text) > 12:
            raise web.HTTPError(400, reason=f"{name} must be a number")
        return int(text)


class RunsHandler(_Handler):
    @web.authenticated
    async def get(self) -> None:
        self.say(await self.ask(self.runs.rows))


class RunHandler(_Handler):
    @web.authenticated
    async def get(self, run: str) -> None:
        after = self.number("after")
        self.say(await self.ask(lambda: self.runs.events(run, after)))

    @web.authenticated
    async def delete(self, run: str) -> None:
        if not await self.ask(lambda: self.runs.delete(run)):
            raise web.HTTPError(404, reason=f"There is no run {run} in the store.")
        self.set_status(204)
        self.finish()


class NodeHandler(_Handler):
    @web.authenticated
    async def get(self, run: str, node: str, what: str) -> None:
        if what == "source":
            self.say({"source": await self.ask(lambda: self.runs.source(run, int(node)))})
        else:
            self.say({"calls": await self.ask(lambda: self.runs.calls(run, int(node)))})


class ReportHandler(_Handler):
    @web.authenticated
    async def get(self, run: str) -> None:
        suffix = self.get_query_argument("format", "html")
        self.say({"text": await self.ask(lambda: self.runs.report(run, suffix))})


def routes(base_url: str, runs: StoredRuns) -> list[tuple[str, type[_Handler], dict[str, Any]]]:
    """The handlers with their paths."""
    root = url_path_join(base_url, "kernelforge", "runs")
    given = {"runs": runs}
    name = r"([\w-]{1,64})"
    return [
        (root, RunsHandler, given),
        (f"{root}/{name}", RunHandler, given),
        (rf"{root}/{name}/nodes/(\d{{1,12}})/(source|calls)", NodeHandler, given),
        (f"{root}/{name}/report", ReportHandler, given),
    ]
