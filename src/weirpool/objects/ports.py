"""The interface of an object store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

__all__ = ["Data", "Listing", "Names", "Store"]

Data = bytes | memoryview
"""The content of an object to be written."""
Listing = list[tuple[str, int]]
"""Names of objects, with their sizes in bytes."""
Names = list[str]


class Store(Protocol):
    """Objects by name, in one place of an object store or in a folder. Thread-safe; each call blocks.

    Names are relative paths with "/" as separator. A written object is durable, and visible to all, when the call
    returns. Readers see an object as a whole or not at all. Any call may raise `StoreError`.
    """

    @property
    def uri(self) -> str:
        """The place, without credentials: `open_store` opens it again."""

    @property
    def conditional(self) -> bool:
        """False if it is known that `create` does not work here; `weirpool.objects.probe` finds out the rest."""

    def create(self, name: str, data: Data) -> bool:
        """Write an object unless it exists; return False if it does. Of several callers, exactly one gets True.

        Two callers that must not both win have to write different data, such as a random id: if the network fails while
        the store answers, the content decides who has won.

        Raises:
            StoreError: It is unknown whether the object was written, or the store has no conditional writes.

        """

    def put(self, name: str, data: Data) -> None:
        """Write an object, or replace it."""

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
        """Return an object's bytes from `start` on, at most `length`; None if there is no such object."""

    def list(self, folder: str, after: str = "") -> Listing:
        """Return name and size in bytes of all objects below a folder, in the order of their names.

        Args:
            folder: Its name without a final "/", or an empty string for the whole store.
            after: Only objects whose names follow this one, so that a long list need not be read from its beginning.

        """

    def folders(self, folder: str = "") -> Names:
        """Return the names of the folders directly in a folder, relative to it, in order."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects. Those that do not exist are ignored."""
