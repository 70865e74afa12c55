"""Object stores: named bytes in a bucket or folder. May import the top files and `journal.disk`.

A store holds what must outlive a machine. Its one conditional operation, :meth:`Store.create`, decides between several
processes that want the same thing.
"""

from __future__ import annotations

from .ports import Store
from .store import open_store

__all__ = ["Store", "open_store"]
