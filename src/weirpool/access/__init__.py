"""How to reach a peer, as options describe it: settings, secrets and certificates. May import the top files."""

from __future__ import annotations

__all__: list[str] = []
