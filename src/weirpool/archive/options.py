"""How a journal is sealed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..errors import LocalError
from ..objects.places import parse_place

__all__ = ["DEFAULT_TARGET_BYTES", "SealOptions"]

DEFAULT_TARGET_BYTES: Final = 128 * 1024 * 1024
"""Of Arrow segments: a file of some 32 MiB, which is large enough for Spark, and held in memory while it is written."""
DEFAULT_MAX_AGE: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SealOptions:
    """How a journal is sealed.

    Args:
        store: The URI of the store for sealed segments, see `weirpool.objects.open_store`; None: the journal's folder.
        target_bytes: Seal when the complete Arrow segments of a log have this size together.
        max_age: Seal smaller ones when the oldest is complete since this many seconds.
        local_bytes: Bytes of sealed Arrow segments to keep in the journal's folder, for readers close to the end.
        keep: Seconds to keep sealed rows; None: for ever. Rows that a reader has not committed are kept.
        keep_bytes: Bytes of sealed segments of each log to keep; None: no limit. The oldest go first, as above.

    """

    store: str | None = None
    target_bytes: int = DEFAULT_TARGET_BYTES
    max_age: float = DEFAULT_MAX_AGE
    local_bytes: int = 0
    keep: float | None = None
    keep_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.store is not None:
            parse_place(self.store)
        for name in ("target_bytes", "max_age", "local_bytes", "keep", "keep_bytes"):
            value = getattr(self, name)
            least = 1 if name == "target_bytes" else 0
            if value is not None and value < least:
                raise LocalError(f"{name} is {value}; it must be at least {least}")
