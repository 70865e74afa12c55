"""The publisher of a `subscribe`: a route, and the data of the request.

The document leaves the string to the recipient. Ours is `route`, or `route?data` with the data in base64url without
padding. It is a name among the handlers of a service, and nothing else: no path, URL or query (THREATS 72).
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, b2a_base64
from typing import Final

from ..errors import FrameError, LocalError

__all__ = ["publisher_of", "read_publisher"]

SEPARATOR: Final = "?"
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")


def publisher_of(route: str, data: bytes, max_bytes: int) -> bytes:
    """Return what to subscribe to.

    Raises:
        LocalError: The route has the separator in it, or the whole is longer than a string may be.

    """
    if SEPARATOR in route:
        raise LocalError(f"the route {route[:100]!r} holds a {SEPARATOR!r}, behind which the request's data stands")
    publisher = route.encode()
    if data:
        publisher += b"?" + b2a_base64(data, newline=False).translate(_TO_URL).rstrip(b"=")
    if len(publisher) > max_bytes:
        raise LocalError(
            f"route and data take {len(publisher)} bytes, and a publisher string has at most max_string_bytes "
            f"({max_bytes}); send less, because this protocol has no place for large requests"
        )
    return publisher


def read_publisher(publisher: bytes) -> tuple[str, bytes]:
    """Return the route and the data that a publisher string, which is UTF-8, stands for.

    Raises:
        FrameError: What stands behind the separator is no base64url.

    """
    route, _, text = publisher.decode().partition(SEPARATOR)
    try:
        if not _BASE64URL.fullmatch(text):
            raise Error("a character that is none of its own")
        padded = text.encode().translate(_FROM_URL) + b"=" * (-len(text) % 4)
        return route, a2b_base64(padded, strict_mode=True)
    except Error as error:
        raise FrameError(f"what stands behind {SEPARATOR!r} is no base64url: {error}") from None
