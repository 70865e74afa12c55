"""The publisher string of `subscribe`: a route, and the data of the request.

The document does not define the string. Weirpool uses `route`, or `route?data` with the data in base64url without
padding. The route is only the name of a handler, and never a path, a URL or a query (THREATS 72).
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, b2a_base64
from typing import Final

from ..errors import FrameError, LocalError

__all__ = ["publisher_of", "read_publisher"]

SEPARATOR: Final = "?"
SHOWN: Final = 50
"""Characters of invalid data to show."""
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")


def publisher_of(route: str, data: bytes, max_bytes: int) -> bytes:
    """Return the publisher string for a route and the data of a request.

    Raises:
        LocalError: The route contains the separator, or the string is longer than `max_bytes`.

    """
    if SEPARATOR in route:
        raise LocalError(f"the route {route[:100]!r} contains {SEPARATOR!r}, which separates routes from data")
    publisher = route.encode()
    if data:
        publisher += b"?" + b2a_base64(data, newline=False).translate(_TO_URL).rstrip(b"=")
    if len(publisher) > max_bytes:
        raise LocalError(
            f"route and data take {len(publisher)} bytes, and a publisher string has at most max_string_bytes "
            f"({max_bytes}); send less, because this protocol has no large requests"
        )
    return publisher


def read_publisher(publisher: bytes) -> tuple[str, bytes]:
    """Return the route and the data of a publisher string, which is UTF-8.

    Raises:
        FrameError: The data is not valid base64url.

    """
    route, _, text = publisher.decode().partition(SEPARATOR)
    try:
        if not _BASE64URL.fullmatch(text):
            raise Error
        padded = text.encode().translate(_FROM_URL) + b"=" * (-len(text) % 4)
        return route, a2b_base64(padded, strict_mode=True)
    except Error:
        shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
        raise FrameError(
            f"the data after {SEPARATOR!r} is not valid base64url without padding (A-Z, a-z, 0-9, - and _): {shown!r}"
        ) from None
