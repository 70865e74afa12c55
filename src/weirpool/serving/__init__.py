"""Journals over the network: served by a collector, read from elsewhere, and offered to clients as streams.

May import `journal`, `aio`, `values` and the top files.
"""

from __future__ import annotations

from .service import Action, serve_journal

__all__ = ["Action", "serve_journal"]
