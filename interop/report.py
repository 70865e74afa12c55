"""The results of a run, as a table for people."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass, field

from .harness import SLOW
from .limits import LIMITS, Limit
from .peers import RIVER, TRANSPORTS, Peer

__all__ = ["STEPS", "Outcome", "failures", "page", "summary"]

STEPS = {
    **{step: f"over {title}" for step, title in TRANSPORTS.items()},
    "lease": "with leases",
    "draft": "in a draft",
    **{step: f"by River, in {title}" for step, title in RIVER.items()},
    SLOW: "by River, over a slow link",
}
"""The steps of a run, and what is said of a pairing in each."""


@dataclass
class Outcome:
    """What came of one pairing: a peer in one role, we in the other.

    Args:
        peer: The peer.
        role: Which side it played, "client" or "server".
        step: In which step of the run, one of `STEPS`.
        results: Each check's result, as the client told it; empty when the run failed as a whole.
        failed: Why it failed as a whole; empty when it did not.
        absent: Why there is no such peer here; empty when there is.

    """

    peer: Peer
    role: str
    step: str
    results: dict[str, str] = field(default_factory=dict)
    failed: str = ""
    absent: str = ""

    def __str__(self) -> str:
        return f"{self.peer.title} as {self.role} {STEPS[self.step]}"

    def limit(self, check: str) -> Limit | None:
        """Return the known limit that concerns `check` here."""
        for limit in LIMITS:
            same = (limit.peer, limit.role) == (self.peer.name, self.role)
            if same and self.step in limit.steps and check in limit.checks:
                return limit
        return None

    def verdict(self, check: str) -> str:
        """Return "ok", "limit", or why the check failed."""
        if self.failed:
            return self.failed
        result = self.results.get(check, "the client did not check it")
        limit = self.limit(check)
        if limit is None:
            return result
        if result == "ok" and not limit.by_chance:
            return f"ok, where this was a known limit: {limit.reason}"
        return "limit" if result == "ok" or limit.seen.fullmatch(result) else result


def _checks(outcomes: list[Outcome]) -> list[str]:
    names: dict[str, None] = {}
    for outcome in outcomes:
        names.update(dict.fromkeys(outcome.results))
    return list(names)


def failures(outcomes: list[Outcome]) -> list[str]:
    """Return a line for each thing that is neither ok nor exactly a known limit."""
    lines = [f"{outcome}: {outcome.failed}" for outcome in outcomes if outcome.failed]
    for outcome in outcomes:
        together = [other for other in outcomes if other.step == outcome.step]
        for check in _checks(together) if not (outcome.failed or outcome.absent) else []:
            verdict = outcome.verdict(check)
            if verdict not in ("ok", "limit"):
                lines.append(f"{outcome}, {check}: {verdict}")
    return lines


def summary(outcome: Outcome) -> str:
    """Return one line about one pairing."""
    if outcome.failed:
        return f"{outcome}: FAILED: {outcome.failed}"
    if outcome.absent:
        return f"{outcome}: ABSENT, and not checked: {outcome.absent}"
    verdicts = [outcome.verdict(check) for check in outcome.results]
    ok, limits = verdicts.count("ok"), verdicts.count("limit")
    wrong = len(verdicts) - ok - limits
    tail = f", {wrong} FAILED" if wrong else ""
    return f"{outcome}: {ok} ok, {limits} known limits of the peer{tail}"


def _table(outcomes: list[Outcome], notes: dict[Limit, str]) -> Iterator[str]:
    """Yield the lines of the table; `notes` gets a text for each limit that was seen, in order."""
    yield "| check | " + " | ".join(f"{outcome.peer.title} {outcome.role}" for outcome in outcomes) + " |"
    yield "|---" * (len(outcomes) + 1) + "|"
    for check in _checks(outcomes):
        cells = []
        for outcome in outcomes:
            verdict = outcome.verdict(check)
            limit = outcome.limit(check)
            if verdict == "limit" and limit is not None:
                notes.setdefault(limit, f"{outcome.peer.title} as {outcome.role}: {limit.reason}")
                verdict = f"limit {list(notes).index(limit) + 1}"
            cells.append(verdict if verdict == "ok" or verdict.startswith("limit ") else "**FAILED**")
        yield f"| `{check}` | " + " | ".join(cells) + " |"


def page(outcomes: list[Outcome], versions: dict[str, str]) -> str:
    """Return the page of the documentation that tells a whole run."""
    notes: dict[Limit, str] = {}
    lines = [
        "# Interoperability",
        "",
        "Written by `make interop`; do not edit. Each peer runs as a client against `examples/interop.py`, and but for",
        "those of River as a server against our client, on one machine. What each check demands is told in",
        "`interop/README.md`.",
        "",
    ]
    for step, title in STEPS.items():
        these = [outcome for outcome in outcomes if outcome.step == step and not outcome.absent]
        lines += [f"## {title[0].upper()}{title[1:]}", "", *_table(these, notes), ""]
    lines += ["## Limits", ""]
    if notes:
        lines += [
            "Known limits of the peers; a run demands to see exactly these, but for those of which chance decides:",
            "",
        ]
        lines += [f"{number}. {note}" for number, note in enumerate(notes.values(), 1)]
        lines.append("")
    absent = [f"* {outcome}: {outcome.absent}" for outcome in outcomes if outcome.absent]
    if absent:
        lines += ["## Not here", "", "These were not checked on this machine:", "", *absent, ""]
    wrong = failures(outcomes)
    if wrong:
        lines += ["## Failures", "", *(f"* {line}" for line in wrong), ""]
    lines += ["## Versions", "", "| what | version |", "|---|---|"]
    lines += [f"| {what} | {version} |" for what, version in versions.items()]
    lines += [
        f"| Python | {platform.python_version()} |",
        "",
        "Run it again: `make interop`, or `.venv/bin/python -m interop --peer java --only server` for a part of it,",
        "which prints and leaves this page alone. It needs Node 18, a Java 17 development kit, Maven, Cargo 1.75",
        "and for replit-river Python 3.12; the first run fetches the peers, later ones work offline.",
        "",
    ]
    return "\n".join(lines)
