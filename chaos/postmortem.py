"""Summarizes a failed run, for logs that are kept longer than its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from .report import Report

__all__ = ["postmortem"]

LINES: Final = 40
"""Maximum lines of a log."""
WIDTH: Final = 400
"""Maximum characters of a line."""


def postmortem(report: Report, folder: Path) -> Iterator[str]:
    """Yield lines: the faults of each source with a problem, how its processes ended, and the ends of their logs."""
    begun = report.log[0]["at"] if report.log else 0.0
    troubles = " \n".join([*report.stuck, *report.complaints, ""])
    names = [verdict.source for verdict in report.verdicts if not verdict.sound or f" {verdict.source} " in troubles]
    for name in names:
        yield f"== {name}: faults, in seconds after the first one, and ends"
        happened = [(fault["at"], _text(fault)) for fault in report.log if fault.get("target", name) in ("", name)]
        happened += [
            (end.at, f"{end.name} ended with {end.code}") for end in report.ends if end.name.endswith(f" {name}")
        ]
        for at, text in sorted(happened):
            yield f"{at - begun:8.3f} {text}"
    logs = [folder / f"{name}.{what}.log" for name in names for what in ("collector", "publisher")]
    for log in [*logs, folder / "query.log", folder / "proxy.log"]:
        if log.exists() and log.stat().st_size:
            yield f"== {log.name}"
            yield from (line[:WIDTH] for line in log.read_text(errors="replace").splitlines()[-LINES:])


def _text(fault: dict[str, Any]) -> str:
    more = " ".join(f"{name}={fault[name]}" for name in ("seconds", "after", "how") if name in fault)
    return f"{fault['kind']} {more}".rstrip()
