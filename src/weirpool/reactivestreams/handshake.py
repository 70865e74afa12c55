"""Hello: the version and the extensions of both sides. reactive-streams-io 0, Protocol negotiation."""

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
    """An extension, which is used if both sides list it in their hellos.

    Attributes:
        name: Its name in `Settings.extensions`.
        id: Its id in hellos.
        layouts: The layouts of its messages, by type.

    """

    name: str
    id: int
    layouts: dict[int, Layout]


METADATA: Final = Extension(
    "metadata", 1, {type: EXTENDED[type] for type in (Type.SUBSCRIBE_METADATA, Type.ON_NEXT_METADATA)}
)
"""Metadata of requests and items, which the document does not have."""

EXTENSIONS: Final = {extension.name: extension for extension in (METADATA,)}
"""All supported extensions, by name."""


def ours(settings: Settings) -> list[Extension]:
    """Return the extensions that this side offers.

    Raises:
        LocalError: The settings name an unknown extension.

    """
    if unknown := [name for name in settings.extensions if name not in EXTENSIONS]:
        raise LocalError(f"Settings.extensions has {unknown[0]!r}; known are {', '.join(EXTENSIONS)}")
    return [EXTENSIONS[name] for name in settings.extensions]


def hello(is_client: bool, extensions: Iterable[Extension]) -> Message:
    """Return the hello of a client or a server."""
    type = Type.CLIENT_HELLO if is_client else Type.SERVER_HELLO
    return Message(type, 0, VERSION, b"", tuple(extension.id for extension in extensions))


def check_version(message: Message) -> None:
    """Check the version of the peer's hello.

    Raises:
        SetupRejected: It is not 0. This side MUST send goodbye and close the connection.

    """
    if message.number != VERSION:
        raise SetupRejected(f"the peer speaks version {message.number} of reactive-streams-io; this side version 0")


def agreed(message: Message, offered: Iterable[Extension]) -> list[Extension]:
    """Return the extensions in both hellos. Unknown ids in the peer's are ignored."""
    return [extension for extension in offered if extension.id in message.ids]
