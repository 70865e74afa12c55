"""Sessions on disk, so that a server may be killed and started again. May import the top files.

A folder of logs, one a session: files of records, each of which is durable before what it tells of is sent.
"""

from __future__ import annotations

from .folder import SessionFolder

__all__ = ["SessionFolder"]
