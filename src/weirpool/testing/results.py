"""Results of checks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ..errors import LocalError
from .rules import RULES, Rule

__all__ = ["BROKEN", "KEPT", "SKIPPED", "Broken", "Result", "Skipped", "require", "results_of"]

KEPT: Final = "kept"
BROKEN: Final = "broken"
SKIPPED: Final = "skipped"


class Broken(Exception):
    """The rule was broken; the text says how."""


class Skipped(Exception):
    """The rule could not be checked; the text says why."""


class Result(NamedTuple):
    """The result of one rule.

    Attributes:
        rule: The rule.
        outcome: "kept", "broken" or "skipped".
        why: How it was broken, or why it was skipped; otherwise empty.

    """

    rule: Rule
    outcome: str
    why: str = ""

    def __str__(self) -> str:
        return f"rule {self.rule.number} {self.outcome}: {self.why or self.rule.text}"


def require(condition: bool, why: str) -> None:
    """Raise :exc:`Broken` with `why` unless `condition` is true."""
    if not condition:
        raise Broken(why)


async def results_of(checks: Mapping[str, Callable[[], Awaitable[None]]], wanted: Iterable[str] | None) -> list[Result]:
    """Run checks sequentially.

    Args:
        checks: The check of each rule, by number; it raises `Broken` or `Skipped`.
        wanted: The numbers of the rules to check; None for all.

    Raises:
        LocalError: One of `wanted` has no check here.

    """
    results = []
    for number in checks if wanted is None else wanted:
        if number not in checks:
            why = RULES[number].why_not if number in RULES else "there is no such rule"
            raise LocalError(f"rule {number} is not checked here ({why or 'it belongs to the other side'})")
        outcome, why = KEPT, ""
        try:
            await checks[number]()
        except Broken as error:
            outcome, why = BROKEN, str(error)
        except Skipped as error:
            outcome, why = SKIPPED, str(error)
        results.append(Result(RULES[number], outcome, why))
    return results
