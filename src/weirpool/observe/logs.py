"""Structured logs: each record of `logging` as one line of JSON."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

from ..texts import shown, shown_json, shown_line

__all__ = ["JsonLines", "TextLines"]

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
"""The attributes of every record. All others were passed as `extra`."""


class TextLines(logging.Formatter):
    """Formats a record for people: a line, and an indented one for each line of a traceback.

    Characters that control a terminal are escaped, and no text looks like a record of its own: a peer may have sent it.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return shown_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        return shown(super().format(record)).replace("\n", "\n    ")


class JsonLines(logging.Formatter):
    """Formats a record as a JSON object: time, level, logger, message, and what was passed as `extra`.

    An exception is under `error`, with its traceback. Use it as the formatter of any handler.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": record.process,
            "message": record.getMessage(),
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return shown_json(json.dumps(fields, ensure_ascii=False, default=str))
