"""Services that describe themselves over the wire. May import the top files, protocols, urls, schema and aio."""

from __future__ import annotations

__all__: list[str] = []
