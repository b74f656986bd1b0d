"""How an attempt to get a kernel can end, by name."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """``KERNEL``, or why there is none: first what a reply can be, then what a call can end in."""

    KERNEL = "kernel"

    NO_CODE = "no_code"
    TWO_KERNELS = "two_kernels"
    HOST_CODE = "host_code"
    WRONG_NAME = "wrong_name"
    WRONG_LANGUAGE = "wrong_language"
    WRONG_TARGET = "wrong_target"
    BAD_FORGE_LINE = "bad_forge_line"
    BAD_EDIT = "bad_edit"
    UNCHANGED = "unchanged"
    TRUNCATED = "truncated"
    OUT_OF_TOKENS = "out_of_tokens"
    EMPTY = "empty"
    REFUSED = "refused"
    TOO_LONG = "too_long"

    NO_BALANCE = "no_balance"
    UNAUTHORISED = "unauthorised"
    NOT_FOUND = "not_found"
    BAD_REQUEST = "bad_request"
    CONTEXT_TOO_LONG = "context_too_long"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    TIMED_OUT = "timed_out"
    DISCONNECTED = "disconnected"
    BAD_RESPONSE = "bad_response"
    CANCELLED = "cancelled"
    OVER_BUDGET = "over_budget"
    NO_PRICE = "no_price"

    @property
    def is_repairable(self) -> bool:
        """Whether telling the model what was wrong with its reply may help."""
        return self in _REPAIRABLE

    @property
    def ends_the_llm(self) -> bool:
        """Whether every later call would end the same way."""
        return self in _ENDS


_REPAIRABLE: Final = frozenset(
    {
        Outcome.NO_CODE,
        Outcome.TWO_KERNELS,
        Outcome.HOST_CODE,
        Outcome.WRONG_NAME,
        Outcome.WRONG_LANGUAGE,
        Outcome.WRONG_TARGET,
        Outcome.BAD_FORGE_LINE,
        Outcome.BAD_EDIT,
        Outcome.UNCHANGED,
        Outcome.TRUNCATED,
        Outcome.OUT_OF_TOKENS,
        Outcome.EMPTY,
        Outcome.TOO_LONG,
    }
)
_ENDS: Final = frozenset(
    {Outcome.NO_BALANCE, Outcome.UNAUTHORISED, Outcome.NOT_FOUND, Outcome.OVER_BUDGET, Outcome.NO_PRICE}
)
