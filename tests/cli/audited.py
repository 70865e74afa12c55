"""A service whose streams are audited."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

import penstock

service = penstock.audited(penstock.Service())


@service.stream("numbers")
def numbers(request: penstock.Payload) -> Iterator[bytes]:
    for number in range(int(request.data)):
        yield b"%d" % number


@service.stream("test.objects")
def objects(request: penstock.Payload) -> Iterator[bytes]:
    # With white space, which River does not send.
    return (b'{"n": %d, "s": "a b"}' % number for number in range(10))


packed = penstock.audited(penstock.Service())
packed.stream("test.objects")(lambda request: [msgspec.msgpack.encode({"n": number}) for number in range(10)])
