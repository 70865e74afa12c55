"""Sessions on disk, so that a server can be killed and restarted. May import the top files and `access`.

A folder has one log per session: a file of records, each of which is durable before the data that it describes is sent.
"""

from __future__ import annotations

from .folder import SessionFolder

__all__ = ["SessionFolder"]
