"""Interfaces to show and encode the frames and data of any protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from .settings import Settings

__all__ = ["Dump", "FrameReader", "TextForm"]


class TextForm(Protocol):
    """Converts between JSON and a binary data format."""

    def from_json(self, data: bytes) -> bytes:
        """Return `data` in the binary format. Raises LocalError if `data` is not JSON."""

    def to_json(self, body: bytes) -> bytes:
        """Return `body` as JSON. Raises FrameError if `body` is not in the binary format."""


class FrameReader(Protocol):
    """Shows one direction of a connection as lines."""

    def lines(self, data: bytes) -> list[str]:
        """Return a line for each frame that `data` completes."""


class Dump(Protocol):
    """Shows and encodes the frames of a protocol.

    Attributes:
        framings: The width of the length before each frame, by the name of the framing.
        codecs: The names of the protocol's codecs; empty if it has only one encoding.
        unit: The protocol's term for a frame.
        self_contained: Frames can be decoded separately; otherwise a frame's meaning depends on earlier frames.

    """

    @property
    def framings(self) -> Mapping[str, int]: ...  # noqa: D102
    @property
    def codecs(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def unit(self) -> str: ...  # noqa: D102
    @property
    def self_contained(self) -> bool: ...  # noqa: D102

    def frames(self, data: bytes, prefix: int, codec: str) -> Iterator[dict[str, object]]:
        """Yield the frames in `data` as objects that can be encoded as JSON.

        Args:
            data: The frames. Without a prefix, data with self-contained frames must be a single one.
            prefix: The width of the length before each frame.
            codec: One of `codecs`; ignored if there are none.

        Raises:
            SessionError: `data` has invalid frames.

        """

    def encoder(self, prefix: int, codec: str) -> Callable[[Mapping[str, object]], bytes]:
        """Return a function that encodes objects such as those of `frames`, in order, or raises LocalError."""

    def detected(self, head: bytes, settings: Settings) -> Dump | None:
        """Return the dump for the version of a client's first bytes; None while it is unknown."""

    def reader(self, mime: str, messages: bool, secrets: bool) -> FrameReader:
        """Return a reader for one direction of a connection.

        Args:
            mime: The MIME type of the connection's metadata; empty for the protocol's default.
            messages: The transport carries messages.
            secrets: Also show credentials, tokens and session ids.

        """
