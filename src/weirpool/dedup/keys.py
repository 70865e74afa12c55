"""How an item is known when it is sent again."""

from __future__ import annotations

from typing import Final

import msgspec

from ..errors import FrameError, Invalid
from ..payload import Payload
from .progress import Row

__all__ = ["checked", "row_of"]

MAX_KEY: Final = 512
"""Characters of an application's key."""

BINARY: Final = "application/octet-stream"


def row_of(payload: Payload, *, is_request: bool) -> Row:
    """Return which row of Spark's sink an item is.

    Args:
        payload: The item.
        is_request: True if its metadata may have other entries beside the row's, such as the route.

    Raises:
        Invalid: Its metadata does not say.

    """
    metadata = _own(payload.metadata) if is_request else payload.metadata
    try:
        return msgspec.json.decode(metadata or b"", type=Row)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise Invalid(
            message="an item does not have the metadata of Spark's sink, so it cannot be recognised when it is sent "
            "again; Deduplicated(key=...) recognises other items"
        ) from None


def checked(key: str) -> str:
    """Return a key of the application, if every database can store it.

    Raises:
        Invalid: It cannot be stored: it is too long, has a zero character, or is not valid Unicode.

    """
    try:
        key.encode()
        valid = len(key) <= MAX_KEY and "\0" not in key
    except UnicodeEncodeError:
        valid = False
    if not valid:
        raise Invalid(message=f"the item's key is not a text of at most {MAX_KEY} characters without zero characters")
    return key


def _own(metadata: bytes | None) -> bytes | None:
    from .. import Metadata

    try:
        entries = Metadata.decode(metadata).entries
    except FrameError:
        return metadata
    return next((entry.content for entry in entries if entry.mime == BINARY), None)
