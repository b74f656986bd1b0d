"""Which models are called, where, and with which key. Keys come from the environment or the keyring only."""

from __future__ import annotations

import importlib
import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from ...exc import ProblemError

OPENAI_URL: Final = "https://api.openai.com/v1"
APIS: Final = ("chat", "responses")

# Whose key opens which host, besides our own KERNELFORGE_LLM_KEY.
_HOST_KEYS: Final = {
    "api.openai.com": "OPENAI_API_KEY",
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
}
OUR_KEY: Final = "KERNELFORGE_LLM_KEY"
_KEYRING_SERVICE: Final = "kernelforge-lab"

HINT: Final = (
    "To add an LLM set KERNELFORGE_LLM_MODEL and KERNELFORGE_LLM_KEY (and KERNELFORGE_LLM_BASE_URL for an "
    "endpoint other than OpenAI's); docs/llm.md says more."
)


class Secret:
    """A key that no log, repr, pickle or traceback shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def redact(self, text: str) -> str:
        """``text`` without the key, and without anything that looks like one."""
        if len(self._value) >= 6:
            text = text.replace(self._value, "[key]")
        return _KEYLIKE.sub("[key]", text)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret(…)" if self._value else "Secret()"

    def __reduce__(self) -> str:
        raise TypeError("a key does not travel to another process")


# sk-…, sk-ant-…, AIza… and bearer tokens, also masked as servers echo them (sk-ab***xyz).
_KEYLIKE: Final = re.compile(r"\b(?:sk|pk|rk)-[\w*\-]{6,}|\bAIza[\w\-]{10,}|(?<=Bearer )[\w.\-*]{6,}")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None


@dataclass(frozen=True)
class Settings:
    """An endpoint and how it is called. Times in seconds.

    ``models`` compete by gain per dollar. ``api``: ``chat`` (chat completions) or ``responses``.
    ``timeout_s`` is for a whole reply, ``idle_s`` for silence within one. ``prices`` override the table
    by model name. ``region_usd`` and ``day_usd`` are caps beside the run's.
    """

    models: tuple[str, ...]
    base_url: str = OPENAI_URL
    api: str = "chat"
    key: Secret = field(default_factory=lambda: Secret(""), repr=False)
    timeout_s: float = 300.0
    idle_s: float = 90.0
    output_tokens: int = 16_000
    effort: str = ""
    attempts: int = 3
    prices: Mapping[str, Price] = field(default_factory=dict)
    region_usd: float | None = None
    day_usd: float | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ProblemError(f"KERNELFORGE_LLM_BASE_URL is {self.base_url!r}.", "Give an http(s) URL.")
        if parts.username or parts.password:
            raise ProblemError("KERNELFORGE_LLM_BASE_URL holds a password.", f"Put the key in {OUR_KEY}.")
        if parts.scheme == "http" and self.key and not self.is_local:
            raise ProblemError(
                "KERNELFORGE_LLM_BASE_URL would send the key unencrypted.", "Use https, or a local address."
            )
        if self.api not in APIS:
            raise ProblemError(f"KERNELFORGE_LLM_API is {self.api!r}.", "Allowed: chat, responses.")

    @property
    def is_local(self) -> bool:
        """Whether the endpoint is this machine or its own network, where a model costs no dollars."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return host == "localhost"
        return address.is_loopback or address.is_private


def from_environment(environment: Mapping[str, str] | None = None) -> Settings | None:
    """Settings, or None when no model or no key is set. Raises ProblemError for malformed values."""
    env = os.environ if environment is None else environment
    models = tuple(m.strip() for m in env.get("KERNELFORGE_LLM_MODEL", "").split(",") if m.strip())
    if not models:
        return None
    base_url = (env.get("KERNELFORGE_LLM_BASE_URL") or OPENAI_URL).rstrip("/")
    settings = Settings(
        models,
        base_url,
        env.get("KERNELFORGE_LLM_API") or "chat",
        key_for(base_url, env),
        output_tokens=int(_number(env, "KERNELFORGE_LLM_OUTPUT_TOKENS", 16_000)),
        timeout_s=_number(env, "KERNELFORGE_LLM_TIMEOUT_S", 300.0),
        effort=env.get("KERNELFORGE_LLM_EFFORT", ""),
        prices=_prices(env.get("KERNELFORGE_LLM_PRICES", "")),
        region_usd=_cap(env, "KERNELFORGE_LLM_REGION_USD"),
        day_usd=_cap(env, "KERNELFORGE_LLM_DAY_USD"),
    )
    return settings if settings.key or settings.is_local else None


def key_for(base_url: str, environment: Mapping[str, str]) -> Secret:
    """Our own variable, else the host's own, else the keyring; empty when there is none."""
    value = environment.get(OUR_KEY, "")
    host = urlsplit(base_url).hostname or ""
    if not value and host in _HOST_KEYS:
        value = environment.get(_HOST_KEYS[host], "")
    return Secret((value or _from_keyring(host)).strip())


def _from_keyring(host: str) -> str:
    try:
        keyring = importlib.import_module("keyring")  # an extra: most people use the environment
        return str(keyring.get_password(_KEYRING_SERVICE, host) or "")
    except Exception:  # noqa: BLE001 - not installed, locked or without a backend: then there is no key
        return ""


def _prices(text: str) -> dict[str, Price]:
    """``model=input/output`` or ``model=input/cached/output`` in USD per million tokens, comma-separated."""
    found = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        model, _, numbers = part.rpartition("=")
        try:
            values = [float(n) for n in numbers.split("/")]
            if not model or len(values) not in (2, 3) or min(values) < 0:
                raise ValueError
        except ValueError:
            raise ProblemError(
                f"KERNELFORGE_LLM_PRICES has {part!r}.", "Write model=input/output in USD per million tokens."
            ) from None
        found[model.strip()] = Price(values[0], values[-1], values[1] if len(values) == 3 else None)
    return found


def _cap(env: Mapping[str, str], name: str) -> float | None:
    return _number(env, name, 0.0) if env.get(name) else None


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    try:
        value = float(env.get(name) or default)
        if not 0 <= value < 1e9:
            raise ValueError
    except ValueError:
        raise ProblemError(f"{name} is {env.get(name)!r}.", "Give a number of at least 0.") from None
    return value
