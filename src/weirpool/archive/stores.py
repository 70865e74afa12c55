"""Where the sealed segments of a journal's folder are."""

from __future__ import annotations

import os
from pathlib import Path

from ..journal.layout import log_folder
from ..journal.sealed import store_uri
from ..objects import Store, open_store

__all__ = ["is_elsewhere", "journal_store"]


def journal_store(journal: str | os.PathLike[str], uri: str | None = None) -> Store:
    """Return the store for the sealed segments of a journal: that at `uri`, the recorded one, or the folder itself."""
    folder = log_folder(journal, "any").parent
    return open_store(uri or store_uri(folder) or folder)


def is_elsewhere(store: Store, folder: Path) -> bool:
    """Return True unless a store is the journal in this folder itself."""
    return Path(store.uri) != folder.absolute()
