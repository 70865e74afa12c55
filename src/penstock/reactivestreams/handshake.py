"""Hello: the version, and which extensions both sides know. reactive-streams-io 0, Protocol negotiation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ..errors import LocalError, SetupRejected
from ..settings import Settings
from ..wire.reactivestreams.codec import EXTENDED, Layout, Message, Type

__all__ = ["EXTENSIONS", "METADATA", "VERSION", "Extension", "agreed", "check_version", "hello", "ours"]

VERSION: Final = 0


@dataclass(frozen=True, slots=True)
class Extension:
    """What both sides must list in their hellos before it is used.

    Attributes:
        name: In `Settings.extensions`.
        id: In hellos.
        layouts: Its messages.

    """

    name: str
    id: int
    layouts: dict[int, Layout]


METADATA: Final = Extension(
    "metadata", 1, {type: EXTENDED[type] for type in (Type.SUBSCRIBE_METADATA, Type.ON_NEXT_METADATA)}
)
"""Metadata beside requests and items, which the document has no place for."""

EXTENSIONS: Final = {extension.name: extension for extension in (METADATA,)}
"""All that we know, by name."""


def ours(settings: Settings) -> list[Extension]:
    """Return the extensions that this side offers.

    Raises:
        LocalError: The settings name one that nobody knows.

    """
    if unknown := [name for name in settings.extensions if name not in EXTENSIONS]:
        raise LocalError(f"Settings.extensions has {unknown[0]!r}; known are {', '.join(EXTENSIONS)}")
    return [EXTENSIONS[name] for name in settings.extensions]


def hello(is_client: bool, extensions: Iterable[Extension]) -> Message:
    """Return the hello of a side."""
    type = Type.CLIENT_HELLO if is_client else Type.SERVER_HELLO
    return Message(type, 0, VERSION, b"", tuple(extension.id for extension in extensions))


def check_version(message: Message) -> None:
    """Look at the version of the peer's hello.

    Raises:
        SetupRejected: It is not ours: goodbye MUST be said, and the connection closed.

    """
    if message.number != VERSION:
        raise SetupRejected(f"the peer speaks version {message.number} of reactive-streams-io; this side version 0")


def agreed(message: Message, offered: Iterable[Extension]) -> list[Extension]:
    """Return the extensions that are listed by both hellos; those that nobody here knows mean nothing."""
    return [extension for extension in offered if extension.id in message.ids]
