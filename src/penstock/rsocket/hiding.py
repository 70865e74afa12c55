"""Hides credentials and tokens in frames that are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..errors import FrameError
from ..texts import quoted, shown_line
from ..wire.rsocket.frames import FOLLOWS, Frame, SetupFrame
from .extensions.metadata import entries
from .extensions.mimes import COMPOSITE

__all__ = ["Hiding"]

SECRET_FIELDS: Final = frozenset({"token"})
"""Whoever knows the token of a session may resume it."""
MOST_ENTRIES: Final = 256


class Hiding:
    """Decides, for one direction of a connection, what of its frames is shown, and how.

    Args:
        mime: What the metadata of the connection is.

    """

    def __init__(self, mime: str) -> None:
        self._mime = mime
        # Streams of which an item's metadata goes on in the next fragment: where an entry begins is not known there.
        self._unfinished: set[int] = set()

    def of(self, frame: Frame) -> Callable[[str, bytes], str | None]:
        """Return what shows the byte fields of `frame`, as :func:`penstock.wire.rsocket.dump.line` wants it."""
        goes_on = frame.stream_id in self._unfinished
        if frame.flags & FOLLOWS and frame.metadata is not None:
            self._unfinished.add(frame.stream_id)
        elif not frame.flags & FOLLOWS:
            self._unfinished.discard(frame.stream_id)
        is_setup = isinstance(frame, SetupFrame)

        def show(name: str, octets: bytes) -> str | None:
            if name in SECRET_FIELDS or (is_setup and name == "data"):
                return hidden(octets)
            if name != "metadata":
                return None
            return hidden(octets) if goes_on else self._metadata(octets, is_setup)

        return show

    def _metadata(self, octets: bytes, is_setup: bool) -> str | None:
        if self._mime != COMPOSITE:
            return hidden(octets) if is_setup or is_secret(self._mime) else None
        try:
            found = entries(octets, MOST_ENTRIES)
        except FrameError:
            # Not whole, or not composite: anything may be in it.
            return hidden(octets)
        shown = (f"{named(mime)}={hidden(content) if is_secret(mime) else quoted(content)}" for mime, content in found)
        return f"[{' '.join(shown)}]"


def is_secret(mime: str) -> bool:
    """Whether metadata of this type says who somebody is; some types of old have other names for it."""
    return "authentication" in mime.lower()


def named(mime: str) -> str:
    """Return a MIME type, which may be a peer's words; those of RSocket without what all of them have."""
    short = mime.removeprefix("message/x.rsocket.").removesuffix(".v0")
    return f'"{shown_line(short)}"' if " " in short else shown_line(short)


def hidden(octets: bytes) -> str:
    """Return what stands for something secret."""
    return f"hidden({len(octets)})"
