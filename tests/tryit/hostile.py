"""The service of the page's tests: quotes, and what a hostile server would send."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tests.reflection.quotes import service
from weirpool import Payload

__all__ = ["service"]

HTML = b"<img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script>"


class Big(msgspec.Struct):
    number: int


@service.call("hostile.html")
def html(request: Payload) -> Payload:
    """<b>Bold</b>"""
    return Payload(HTML)


@service.call("<b>bold</b>")
def bold(request: Payload) -> Payload:
    return request


@service.stream("hostile.huge")
def huge(request: Payload) -> Iterator[bytes]:
    for _ in range(10):
        yield b"x" * 5_000_000


@service.call("big")
def big(request: Big) -> Big:
    return request


@service.stream("candles.{symbol}.live")
def candles(symbol: str) -> Iterator[str]:
    yield f"{symbol} up"
    yield f"{symbol} down"
