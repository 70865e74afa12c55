"""The page on which people try a service. May import the top files, protocols, urls, aio, schema and reflection."""

from __future__ import annotations

__all__: list[str] = []
