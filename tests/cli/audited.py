"""A service whose streams are audited."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec

import weirpool

service = weirpool.audited(weirpool.Service())


@service.stream("numbers")
def numbers(request: weirpool.Payload) -> Iterator[bytes]:
    for number in range(int(request.data)):
        yield b"%d" % number


@service.stream("test.objects")
def objects(request: weirpool.Payload) -> Iterator[bytes]:
    # With white space, which River does not send.
    return (b'{"n": %d, "s": "a b"}' % number for number in range(10))


opened = itertools.count()


@service.stream("test.counted")
def counted(request: weirpool.Payload) -> Iterator[bytes]:
    """Yield items that differ from those of every other stream, whoever asked for them."""
    stream = next(opened)
    encode = msgspec.msgpack.encode if request.data[:1] == b"\x81" else msgspec.json.encode
    return (encode({"stream": stream, "n": number}) for number in range(100))


packed = weirpool.audited(weirpool.Service())
packed.stream("test.objects")(lambda request: [msgspec.msgpack.encode({"n": number}) for number in range(10)])
