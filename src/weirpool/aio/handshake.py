"""Acceptors that decode and validate the metadata of clients' set-ups."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from ..connection import Connection
from ..errors import Mismatch, SetupRejected, UnsupportedKind
from ..protocols import spec_of
from ..schema.converter import Converter
from ..schema.formats import KNOWN, format_of
from .setup import Acceptor, Admitted, Setup

__all__ = ["Validator", "handshake", "rehandshake"]

Validator: TypeAlias = Callable[[Any, Setup], "Any | Awaitable[Any]"]
"""``validate(metadata, setup)``, a function or coroutine function that returns the client's identity for handlers, or
an :class:`~weirpool.Admitted`."""


def handshake(metadata: Any, validate: Validator | None = None) -> Acceptor:
    """Return an acceptor that decodes a client's set-up data: ``serve(service, url, acceptor=handshake(Token))``.

    Handlers read the result as ``weirpool.current_connection().identity``.

    Args:
        metadata: The type of the set-up data: any type that msgspec decodes, or a JSON Schema. Clients with other
            data are rejected, over River with the code MALFORMED_HANDSHAKE_META.
        validate: A function or coroutine function, called with the value and the :class:`~weirpool.Setup`. It returns
            the identity for handlers, or an :class:`~weirpool.Admitted` that also has the client's principal or
            service; without `validate`, the identity is the value. To reject the client, it raises
            :exc:`~weirpool.SetupRejected`; River's codes for it are REJECTED_BY_CUSTOM_HANDLER, the default, and
            REJECTED_UNSUPPORTED_CLIENT. The text of any other error is not sent to the client.

    Raises:
        LocalError: `metadata` is not a type that can be decoded.

    """
    converter = Converter(metadata)

    def accept(setup: Setup) -> Admitted | Awaitable[Admitted]:
        value = _read(converter, setup)
        if validate is None:
            return Admitted(value)
        found = validate(value, setup)
        return _later(found) if inspect.isawaitable(found) else _admitted(found)

    return accept


async def _later(found: Awaitable[Any]) -> Admitted:
    return _admitted(await found)


def _admitted(found: Any) -> Admitted:
    return found if isinstance(found, Admitted) else Admitted(found)


def _read(converter: Converter, setup: Setup) -> Any:
    """Decode the set-up data of a client.

    Raises:
        SetupRejected: The data is not of the expected type.

    """
    code = spec_of(setup.protocol).malformed_code
    form = format_of(setup.data_mime)
    if form is None:
        raise SetupRejected(f"the data MIME type {setup.data_mime!r} of the set-up is unknown; use {KNOWN}", code)
    try:
        return converter.decode(form, setup.payload.data)
    except Mismatch as error:
        raise SetupRejected(f"the handshake metadata does not match its schema: {error}", code) from None


async def rehandshake(connection: Connection) -> Any:
    """Request new handshake metadata from a client, for example a refreshed token. Only River supports it.

    The acceptor checks the new metadata. Until it accepts, no request is answered. The session ends if it rejects the
    client, or if the client does not answer within `Settings.handshake_timeout`.

    Args:
        connection: A connection of a server, from :func:`weirpool.current_connection` or a connection hook.

    Returns:
        The new `connection.identity`.

    Raises:
        UnsupportedKind: The protocol does not support it, or this side is the client.
        SessionClosed: The session has ended.

    """
    if connection.is_client or connection.renew is None:
        raise UnsupportedKind("rehandshake() needs a server's connection, and a protocol that supports it")
    await connection.renew()
    return connection.identity
