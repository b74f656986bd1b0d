"""What tokens cost: the person's own table first, then the published prices of ``genai-prices``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .settings import Price, Settings

_MILLION: Final = 1e6

# Code and prose take 3 to 4 characters a token; estimates for a reservation must not be too low.
CHARS_PER_TOKEN: Final = 3.0


@dataclass(frozen=True)
class Usage:
    """Tokens of a call. ``cached`` are part of ``input``, ``reasoning`` of ``output``."""

    input: int = 0
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    is_estimate: bool = False


def tokens_of(text: str) -> int:
    """Tokens in a text, estimated from above."""
    return int(len(text) / CHARS_PER_TOKEN) + 1


def cost_usd(settings: Settings, model: str, usage: Usage) -> float | None:
    """What a call costs; None when nobody knows the model's price. Local endpoints cost nothing."""
    own = settings.prices.get(model)
    if own is not None:
        return _by(own, usage)
    if settings.is_local:
        return 0.0
    return _published(settings.base_url, model, usage)


def _by(price: Price, usage: Usage) -> float:
    cached = price.input if price.cached is None else price.cached
    fresh = max(usage.input - usage.cached, 0)
    return (fresh * price.input + usage.cached * cached + usage.output * price.output) / _MILLION


def _published(base_url: str, model: str, usage: Usage) -> float | None:
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    tokens = Tokens(
        input_tokens=usage.input,
        cache_read_tokens=min(usage.cached, usage.input),
        output_tokens=usage.output,
    )
    # The endpoint's own price where it is known (resellers differ), else the model maker's.
    for place in (base_url, None):
        try:
            return float(calc_price(tokens, model, provider_api_url=place).total_price)
        except (LookupError, ValueError):
            continue
    return None
