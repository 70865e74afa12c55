"""Handlers that run once for each item, however often it is sent. May import the top files and aio."""

from __future__ import annotations

__all__: list[str] = []
