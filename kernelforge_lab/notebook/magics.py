"""``%%forge`` and ``%forge``: from a cell to a run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import Any, Final

import traitlets
from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from ..entry import load
from ..environment import is_interactive
from ..exc import CaptureError, ForgeError
from ..options import LEVELS, TARGETS, Options
from ..problem import is_problem, make_problem
from ..run import Run
from . import progress
from .calls import ModelCall
from .cell import CellResult, run_cell
from .summary import Summary

SUBCOMMANDS: Final = ("status", "stop", "pause", "resume", "show", "report", "doctor")
_HELP: Final = (
    "%%forge above a cell that calls a model forges that model; %forge "
    + "|".join(SUBCOMMANDS)
    + " controls a run. %forge? shows all options."
)


@magics_class
class ForgeMagics(Magics):
    """The magics and the runs they started, newest last."""

    shell: Any  # traitlets knows it as optional; magics exist only inside a shell

    # %config ForgeMagics.minutes = 2: what a cell's options do not say.
    target = traitlets.Enum((None, *TARGETS), None, allow_none=True, help="what kernels are for").tag(
        config=True
    )
    level = traitlets.Enum((None, *LEVELS), None, allow_none=True, help="region or op").tag(config=True)
    trials = traitlets.Int(None, allow_none=True, help="kernels judged at most").tag(config=True)
    minutes = traitlets.Float(None, allow_none=True, help="time at most").tag(config=True)
    budget_usd = traitlets.Float(None, allow_none=True, help="dollars at most").tag(config=True)
    proposers = traitlets.Unicode(None, allow_none=True, help="who writes kernels").tag(config=True)
    seed = traitlets.Int(None, allow_none=True, help="of every choice").tag(config=True)
    wait = traitlets.Bool(None, allow_none=True, help="return when the run has ended").tag(config=True)

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self.runs: list[Run] = []

    @no_var_expand
    @magic_arguments()
    @argument("words", nargs="*", help="cell: name of the model to forge; line: a sub-command and a run")
    @argument(
        "--target", choices=TARGETS, help="what kernels are compiled for (default: where the inputs are)"
    )
    @argument("--level", choices=LEVELS, help="region: fusible subgraphs (default); op: each op alone")
    @argument("--trials", type=int, help="judge at most this many kernels (default 60)")
    @argument("--minutes", type=float, help="stop after this time (default 5)")
    @argument("--budget-usd", type=float, help="dollars that paid proposers may spend (default 0)")
    @argument(
        "--proposer",
        action="append",
        help="who writes kernels: templates, llm (repeat or separate by commas)",
    )
    @argument("--seed", type=int, help="makes every choice reproducible (default 0)")
    @argument("--regions", help="search only these: hashes or op names, separated by commas")
    @argument("--wait", dest="wait", action="store_const", const=True, help="return when the run has ended")
    @argument("--no-wait", dest="wait", action="store_const", const=False, help="return at once")
    @argument("--into", help="also store the run under this name")
    @line_cell_magic
    def forge(self, line: str, cell: str | None = None) -> Any:
        """Find faster kernels for the model that a cell calls.

        ``%%forge [MODEL] [options]`` runs the cell once, unchanged, then searches in the background and
        returns the Run (also in ``_forge``; the cell's own last value is displayed and in ``_forge_value``).
        ``%forge status|stop|pause|resume|show|report|doctor [RUN]`` controls a run.
        """
        __tracebackhide__ = True
        arguments = parse_argstring(self.forge, line)
        if cell is None:
            return self._command(arguments.words)
        options = self._options(arguments)
        name = _model_name(arguments.words)
        if arguments.into and not arguments.into.isidentifier():
            raise UsageError(f"--into needs a variable name, not {arguments.into!r}.")
        result = run_cell(self.shell, cell)
        self._show_value(result)
        try:
            run = start(choose(result, name, self.shell.user_ns), options)
        except (ForgeError, UsageError) as error:
            # The cell did its work: its value is shown, and a Run All goes on past our trouble.
            print(f"kernelforge: {error}", file=sys.stderr)
            return None
        self.runs.append(run)
        self.shell.user_ns["_forge"] = run
        if arguments.into:
            self.shell.user_ns[arguments.into] = run
        if options.wait if options.wait is not None else not is_interactive():
            _wait(run)
        return run

    @no_var_expand
    @magic_arguments()
    @argument("region", nargs="?", help="which region: a hash, the beginning of one, or a part of its ops")
    @argument("--parent", type=int, help="the node it was made from (default stock)")
    @argument("--run", help="the variable that holds the run, or its id (default the newest)")
    @argument("--idea", default="", help="a line about what it tries")
    @argument("--into", help="also store the node's record under this name")
    @cell_magic
    def kernel(self, line: str, cell: str) -> None:
        """Judge a kernel of your own: the cell is its source, with its ``// forge:`` lines.

        It joins the run's tree as any other; a new best is proven and can be installed.
        """
        __tracebackhide__ = True
        arguments = parse_argstring(self.kernel, line)
        if not cell.strip():
            raise UsageError("The cell is empty: it should hold a kernel's source, with // forge: lines.")
        run = self._find(arguments.run)
        idea = arguments.idea.strip("'\"")
        try:
            node = run.submit(cell, arguments.region, parent=arguments.parent, idea=idea)
        except ForgeError as error:
            raise UsageError(str(error)) from None
        record = progress.verdict_of(run, node)
        if arguments.into:
            self.shell.user_ns[arguments.into] = record
        print(record.line() if record else f"node {node} is still being judged; see _forge.node({node})")

    def _options(self, arguments: Any) -> Options:
        """The cell's options, then those of %config, then the defaults."""
        names = ("target", "level", "trials", "minutes", "budget_usd", "seed", "regions", "wait")
        given: dict[str, Any] = {name: getattr(arguments, name) for name in names}
        given["proposers"] = ",".join(arguments.proposer) if arguments.proposer else None
        for name, value in given.items():
            if value is None:
                given[name] = getattr(self, name, None)
        try:
            return Options(**{name: value for name, value in given.items() if value is not None})
        except ForgeError as error:
            raise UsageError(str(error)) from None

    def _show_value(self, result: CellResult) -> None:
        self.shell.user_ns["_forge_value"] = result.value
        if result.value is not None and not result.quiet:
            from IPython.display import display

            display(result.value)

    # ---- %forge … ----
    def _command(self, words: list[str]) -> Any:
        if not words:
            print(_HELP)
            for run in self.runs:
                print(_status(run))
            return None
        command, *rest = words
        if command not in SUBCOMMANDS:
            raise UsageError(f"%forge has no {command!r}; it has {', '.join(SUBCOMMANDS)}.")
        if command == "doctor":
            return _doctor()
        run = self._find(rest[0] if rest else None)
        extra = rest[1:]
        if command == "report":
            path = extra[0] if extra else "kernelforge-report.html"
            try:
                print(f"Report written to {run.report(path)}")
            except ForgeError as error:
                raise UsageError(str(error)) from None
        elif extra:
            raise UsageError(f"%forge {command} takes one run, not {' '.join(rest)!r}.")
        elif command == "status":
            print(_status(run))
        elif command == "show":
            return run
        else:
            getattr(run, command)()
            print(f"{command}: {_status(run)}")
        return None

    def _find(self, name: str | None) -> Run:
        if name is not None:
            run = self.shell.user_ns.get(name)
            if isinstance(run, Run):
                return run
            match = [r for r in self.runs if r.id == name]
            if match:
                return match[-1]
            try:
                return load(name)
            except ForgeError as error:
                raise UsageError(f"There is no variable {name!r} that holds a run. {error}") from None
        if not self.runs:
            raise UsageError("There is no run yet; put %%forge above a cell that calls a model.")
        return self.runs[-1]


def choose(result: CellResult, name: str | None, namespace: dict[str, Any]) -> ModelCall:
    """The call to forge: of the named model, else the module that took most time, else the cell's problem.

    Raises ForgeError or UsageError with one sentence that says what was there instead.
    """
    calls = result.calls.calls
    if name is not None:
        wanted = _resolve(name, namespace)
        for call in calls:
            if call.module is wanted or call.module is getattr(wanted, "_orig_mod", None):
                return call
        called = ", ".join(c.name for c in calls) or "none"
        raise CaptureError(f"The cell never called {name}.", f"Models it called: {called}.")
    if calls:
        if len(calls) > 1:
            others = ", ".join(f"{c.name} ({c.total_s:.2f} s)" for c in calls[1:4])
            print(f"kernelforge: forging {calls[0].name} ({calls[0].total_s:.2f} s); also called: {others}.")
        return calls[0]
    if "Model" in result.defines and is_problem(namespace):
        problem = make_problem(namespace)
        return ModelCall(problem.model, problem.args, {}, False, False, None, 0.0, 0.0, 1)
    raise CaptureError(
        "The cell ran, but it called no torch.nn.Module.",
        "Put %%forge above a cell that runs a model, or use kernelforge_lab.forge(function, *args).",
    )


def start(call: ModelCall, options: Options) -> Run:
    """Start a run on a noticed call."""
    if call.autocast is not None:
        print(
            f"kernelforge: the cell used autocast ({call.autocast.device}, {call.autocast.dtype}), which "
            "is not captured yet: kernels are searched for the call without it.",
            file=sys.stderr,
        )
    return Run(options).start(call.module, call.args, call.kwargs)


def _model_name(words: list[str]) -> str | None:
    if not words:
        return None
    if len(words) > 1 or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", words[0]):
        raise UsageError(f"%%forge takes the name of one model, not {' '.join(words)!r}.")
    return words[0]


def _resolve(name: str, namespace: dict[str, Any]) -> Any:
    """A variable or an attribute of one (``pipe.unet``); nothing is evaluated."""
    first, *rest = name.split(".")
    if first not in namespace:
        raise UsageError(f"There is no variable {first!r}.")
    value = namespace[first]
    for attribute in rest:
        if not hasattr(value, attribute):
            raise UsageError(f"{first!r} has no attribute {attribute!r}.")
        value = getattr(value, attribute)
    return value


def _wait(run: Run) -> None:
    try:
        progress.follow(run)
    except KeyboardInterrupt:
        print("The run goes on in the background; _forge.stop() ends it.")


def _status(run: Run) -> str:
    return Summary(run.log.events).text()


def _doctor() -> None:
    # A process of its own: it looks at compilers and devices, and shows what a terminal would.
    command = [sys.executable, "-m", "kernelforge_lab.cli", "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    print(done.stdout or done.stderr)


def _complete(magics: ForgeMagics) -> Any:
    """Completer of options and sub-commands; IPython has none of its own for magic_arguments."""
    options = sorted(o for a in magics.forge.parser._actions for o in a.option_strings if o.startswith("--"))

    def complete(_completer: Any, event: Any) -> list[str]:
        words = shlex.split(event.line, posix=False)
        before = words[-2] if not event.line.endswith(" ") and len(words) > 1 else words[-1]
        if before == "--target":
            return list(TARGETS)
        if before == "--level":
            return list(LEVELS)
        first = not event.line.startswith("%%") and len(words) <= (1 if event.line.endswith(" ") else 2)
        return [*SUBCOMMANDS, *options] if first else options

    return complete


def _complete_kernel(magics: ForgeMagics) -> Any:
    """Options, and the regions of the newest run."""

    def complete(_completer: Any, _event: Any) -> list[str]:
        options = [o for a in magics.kernel.parser._actions for o in a.option_strings if o.startswith("--")]
        regions = list(magics.runs[-1].history.regions) if magics.runs else []
        return [*regions, *sorted(options)]

    return complete


def load_ipython_extension(shell: Any) -> None:
    """Register the magics, their completion and their %config. Prints nothing."""
    magics = ForgeMagics(shell)
    shell.register_magics(magics)
    for key in ("%%forge", "%forge"):
        shell.set_hook("complete_command", _complete(magics), str_key=key)
    shell.set_hook("complete_command", _complete_kernel(magics), str_key="%%kernel")
    shell.configurables.append(magics)


def unload_ipython_extension(shell: Any) -> None:
    """Stop the runs that magics started and take the magics away."""
    magics = shell.magics_manager.registry.get("ForgeMagics")
    if isinstance(magics, ForgeMagics):
        for run in magics.runs:
            run.stop()
        magics.runs.clear()
        shell.configurables[:] = [c for c in shell.configurables if c is not magics]
    for kind in ("line", "cell"):
        for name in ("forge", "kernel"):
            shell.magics_manager.magics[kind].pop(name, None)
