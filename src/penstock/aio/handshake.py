"""Handshakes: what clients say of themselves, held against a schema and shown to a validator."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from ..connection import Connection
from ..errors import Mismatch, SetupRejected, UnsupportedKind
from ..protocols import spec_of
from ..schema.converter import Converter
from ..schema.formats import KNOWN, format_of
from .admission import Acceptor, Admitted, Setup

__all__ = ["Validator", "handshake", "rehandshake"]

Validator: TypeAlias = Callable[[Any, Setup], "Any | Awaitable[Any]"]
"""``validate(metadata, setup)``, a function or a coroutine function: returns what handlers see of the client."""


def handshake(metadata: Any, validate: Validator | None = None) -> Acceptor:
    """Return an acceptor that reads what a client says of itself: ``serve(service, url, acceptor=handshake(Token))``.

    Handlers find what came of it as ``penstock.current_connection().identity``.

    Args:
        metadata: What a client has to say: any type that msgspec decodes, or a JSON Schema. Other clients are refused,
            with MALFORMED_HANDSHAKE_META over River.
        validate: Called with the value and the :class:`~penstock.Setup`; returns what handlers see, or awaits it. It
            refuses the client by raising :exc:`~penstock.SetupRejected`, to which River knows the codes
            REJECTED_BY_CUSTOM_HANDLER, which is the default, and REJECTED_UNSUPPORTED_CLIENT. Of any other error the
            client learns nothing. None: handlers see the value.

    Raises:
        LocalError: `metadata` is nothing that can be decoded.

    """
    converter = Converter(metadata)

    def accept(setup: Setup) -> Admitted | Awaitable[Admitted]:
        value = _read(converter, setup)
        if validate is None:
            return Admitted(value)
        found = validate(value, setup)
        return _later(found) if inspect.isawaitable(found) else Admitted(found)

    return accept


async def _later(found: Awaitable[Any]) -> Admitted:
    return Admitted(await found)


def _read(converter: Converter, setup: Setup) -> Any:
    """Return the value that a client says.

    Raises:
        SetupRejected: It says none of this type.

    """
    code = spec_of(setup.protocol).malformed_code
    form = format_of(setup.data_mime)
    if form is None:
        raise SetupRejected(f"a set-up of type {setup.data_mime!r} is not understood; use {KNOWN}", code)
    try:
        return converter.decode(form, setup.payload.data)
    except Mismatch as error:
        raise SetupRejected(f"the handshake's metadata does not match its schema: {error}", code) from None


async def rehandshake(connection: Connection) -> Any:
    """Ask a client for its metadata anew, such as a token that has been refreshed; over River alone.

    The acceptor looks at it as it did at the first. Until it has, no request is answered. A client that is refused,
    or does not answer within `Settings.handshake_timeout`, loses its session.

    Args:
        connection: A server's, as :func:`~penstock.current_connection` or a connection hook gives it.

    Returns:
        What the acceptor made of it: `connection.identity`.

    Raises:
        UnsupportedKind: The protocol knows no such thing, or the connection is a client's.
        SessionClosed: The session has ended.

    """
    if connection.is_client or connection.renew is None:
        raise UnsupportedKind("only a server asks its clients again who they are, where the protocol lets it")
    await connection.renew()
    return connection.identity
