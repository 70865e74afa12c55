"""The extension Authentication: credentials in the metadata of a request or of a set-up.

Secrets are never shown: neither `repr` nor errors contain passwords, tokens or payloads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ...errors import FrameError, LocalError
from .mimes import read_type, write_type

__all__ = ["Authentication", "Bearer", "Custom", "Simple", "decode", "encode"]

# Well-known Auth Types.
SIMPLE: Final = 0x00
BEARER: Final = 0x01
MAX_USERNAME_BYTES: Final = 0xFFFF
TYPE: Final = "authentication type"


@dataclass(frozen=True, slots=True)
class Simple:
    """A user name and a password.

    Attributes:
        username: The user name, at most 65,535 bytes of UTF-8.
        password: The password. It may be empty.

    """

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Bearer:
    """A bearer token.

    Attributes:
        token: The token.

    """

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Custom:
    """Any other type of authentication.

    Attributes:
        type: The name of the type, with 1 to 128 ASCII characters, or a well-known number without a class here.
        payload: The credentials in the format of the type.

    """

    type: str | int
    payload: bytes = field(repr=False)


Authentication = Simple | Bearer | Custom


def encode(authentication: Authentication) -> bytes:
    """Return the content of a `message/x.rsocket.authentication.v0` entry.

    Raises LocalError if a text is not valid Unicode, if the username is too long, or if the type of :class:`Custom` is
    not a valid name or number, or is that of :class:`Simple` or :class:`Bearer`.
    """
    match authentication:
        case Simple(username, password):
            name = _utf8(username, "username")
            if len(name) > MAX_USERNAME_BYTES:
                raise LocalError(f"the username has {len(name)} bytes of UTF-8; the maximum is {MAX_USERNAME_BYTES}")
            return write_type(SIMPLE, TYPE) + len(name).to_bytes(2, "big") + name + _utf8(password, "password")
        case Bearer(token):
            return write_type(BEARER, TYPE) + _utf8(token, "token")
        case Custom(type, payload):
            if type in (SIMPLE, BEARER):
                raise LocalError(f"use {(Simple, Bearer)[int(type)].__name__} for {TYPE} {type}")
            return write_type(type, TYPE) + payload


def decode(content: bytes) -> Authentication:
    """Return the credentials in a `message/x.rsocket.authentication.v0` entry, which are not verified.

    Raises FrameError if a length runs past the end, or if a text is not UTF-8.
    """
    type, at = read_type(content, 0, TYPE)
    if type == BEARER:
        return Bearer(_text(content, at, len(content), "token"))
    if type != SIMPLE:
        return Custom(type, content[at:])
    start = at + 2
    if start > len(content):
        raise FrameError("the authentication ends within the username's length", at)
    end = start + int.from_bytes(content[at:start], "big")
    if end > len(content):
        raise FrameError(f"a username of {end - start} bytes runs past the end", at)
    return Simple(_text(content, start, end, "username"), _text(content, end, len(content), "password"))


# UnicodeErrors contain the text. Our errors are raised outside of `except`, so that their context does not show it
# in a log.


def _utf8(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except (AttributeError, UnicodeEncodeError):
        pass
    raise LocalError(f"the {what} must be a string that can be encoded in UTF-8")


def _text(content: bytes, start: int, end: int, what: str) -> str:
    try:
        return content[start:end].decode()
    except UnicodeDecodeError as error:
        wrong = start + error.start
    raise FrameError(f"the {what} is not valid UTF-8", wrong)
