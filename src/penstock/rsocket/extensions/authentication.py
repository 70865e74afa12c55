"""Authentication: the extension that carries who asks, in the metadata of a request or of a set-up.

What is secret is never shown: neither `repr` nor an error has passwords, tokens or payloads in it.
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
        username: At most 65,535 bytes of UTF-8.
        password: It may be empty.

    """

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Bearer:
    """A token, and whoever bears it is trusted."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Custom:
    """Any other type of authentication.

    Attributes:
        type: Its name, of 1 to 128 ASCII characters, or a well-known number that we know nothing of.
        payload: What belongs to it.

    """

    type: str | int
    payload: bytes = field(repr=False)


Authentication = Simple | Bearer | Custom


def encode(authentication: Authentication) -> bytes:
    """Return the content of a `message/x.rsocket.authentication.v0` entry.

    Raises LocalError if a text is not valid Unicode, if the username is too long, or if the type of :class:`Custom` has
    no such name or number, or has a class of its own.
    """
    match authentication:
        case Simple(username, password):
            name = _octets(username, "username")
            if len(name) > MAX_USERNAME_BYTES:
                raise LocalError(f"the username is {len(name)} bytes of UTF-8; at most {MAX_USERNAME_BYTES} can travel")
            octets = len(name).to_bytes(2, "big") + name + _octets(password, "password")
            return write_type(SIMPLE, TYPE) + octets
        case Bearer(token):
            return write_type(BEARER, TYPE) + _octets(token, "token")
        case Custom(type, payload):
            if type in (SIMPLE, BEARER):
                raise LocalError(f"{TYPE} {type} is what {(Simple, Bearer)[int(type)].__name__} is for")
            return write_type(type, TYPE) + payload


def decode(content: bytes) -> Authentication:
    """Return what a `message/x.rsocket.authentication.v0` entry claims; nothing is verified.

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


# The errors of a codec hold what they could not read. Ours are raised outside of `except`, so that these do not
# hang on them as their context, for a log to show.


def _octets(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except (AttributeError, UnicodeEncodeError):
        pass
    raise LocalError(f"the {what} must be a string that UTF-8 can say")


def _text(content: bytes, start: int, end: int, what: str) -> str:
    try:
        return content[start:end].decode()
    except UnicodeDecodeError as error:
        wrong = start + error.start
    raise FrameError(f"the {what} is no UTF-8", wrong)
