"""Receiving rows exactly once: staged micro-batches in a journal, and handlers that run once for each item.

May import the top files, journal, aio and access.
"""

from __future__ import annotations

__all__: list[str] = []
