"""The table ``[serve]`` of a file of feeds."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..texts import concealed
from .values import Text

__all__ = ["Serve"]


class Serve(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table ``[serve]``: where the journals of all feeds are served, and what readers must show."""

    url: str | tuple[str, ...]
    """The addresses to listen on."""
    cafile: str | None = None
    cert: str | None = None
    key: str | None = None
    token: Text | None = None
    operator_token: Text | None = None
    """What those must show who also set and remove readers, and delete rows."""
    address: str | None = None
    """The URL by which readers reach the collector, if that is not the first address."""
    allow_anonymous: bool = False
    """Readers on other machines need not show anything."""
    journals: dict[str, str] = {}
    """Names of journals: the folder of each. The others are named after their folder."""

    __repr__ = concealed

    def at(self, folder: Path) -> Serve:
        """Return this table with paths that start from `folder` instead of the working directory."""

        def placed(path: str | None) -> str | None:
            return None if path is None else str(folder / path)

        return msgspec.structs.replace(
            self,
            cafile=placed(self.cafile),
            cert=placed(self.cert),
            key=placed(self.key),
            journals={name: str(folder / path) for name, path in self.journals.items()},
        )
