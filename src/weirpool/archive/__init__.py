"""Cold storage of logs: Parquet files, listed in a manifest. May import the top files, `journal` and `objects`.

The oldest segments of a log are *sealed*: their rows are written to a Parquet file, the manifest lists it, and then the
Arrow files go. A position names the same row in either form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .options import SealOptions
    from .reader import ArchiveReader
    from .sealer import Sealer, SealingThread
    from .sealing import Sealed, seal
    from .verify import verify_sealed

__all__ = ["ArchiveReader", "SealOptions", "Sealed", "Sealer", "SealingThread", "seal", "verify_sealed"]

# Imported on first use: every reader of a log imports this package, and few logs are sealed.
__getattr__ = lazily(
    __name__,
    {
        "ArchiveReader": "reader",
        "SealOptions": "options",
        "Sealed": "sealing",
        "Sealer": "sealer",
        "SealingThread": "sealer",
        "seal": "sealing",
        "verify_sealed": "verify",
    },
)
