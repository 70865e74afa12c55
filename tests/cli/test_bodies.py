from __future__ import annotations

import pytest

from weirpool.cli.bodies import bodies_of
from weirpool.errors import LocalError
from weirpool.payload import Payload
from weirpool.wire.river.values import encode_value


def test_msgpack_is_written_and_read_as_json() -> None:
    bodies = bodies_of("river+tcp://127.0.0.1:1?codec=msgpack")
    assert bodies.outgoing(Payload(b'{"n": 3}')) == Payload(encode_value({"n": 3}, "msgpack"))
    assert bodies.incoming(Payload(encode_value([1], "msgpack"))) == Payload(b"[1]")
    assert bodies.outgoing(Payload()) == Payload()
    with pytest.raises(LocalError, match="JSON"):
        bodies.outgoing(Payload(b"{"))


async def test_lines_are_items() -> None:
    bodies = bodies_of("river+tcp://127.0.0.1:1?codec=msgpack")

    async def source() -> object:
        yield b"1"

    assert [item.data async for item in bodies.items([b"1", b"2"])] == [b"\x01", b"\x02"]
    assert [item.data async for item in bodies.items(source())] == [b"\x01"]  # type: ignore[arg-type]


@pytest.mark.parametrize("url", ["river+tcp://127.0.0.1:1", "rsocket+tcp://127.0.0.1:1"])
def test_other_values_are_written_unchanged(url: str) -> None:
    bodies = bodies_of(url)
    assert bodies.outgoing(Payload(b"{")) == bodies.incoming(Payload(b"{")) == Payload(b"{")


def test_cbor_is_written_and_read_as_json() -> None:
    bodies = bodies_of("rsocket+tcp://127.0.0.1:1", "application/cbor")
    assert bodies.outgoing(Payload(b'{"n": 3}', b"m")) == Payload(b"\xa1an\x03", b"m")
    assert bodies.incoming(Payload(b"\xbfan\xc4\x82\x21\x19\x01\xf4ab\x41\x00\xff")) == Payload(
        b'{"n":"5.00","b":"AA=="}'
    )
    # Spring sends a String as it is.
    assert bodies.incoming(Payload(b"hello")) == Payload(b"hello")
    assert bodies.incoming(Payload(b"\x81" * 1_000)) == Payload(b"\x81" * 1_000)
    # JSON has no such simple values.
    for data in (b"\xf0", b"\x81\xf8\xff"):
        assert bodies.incoming(Payload(data)) == Payload(data)
    with pytest.raises(LocalError, match="must be JSON"):
        bodies.outgoing(Payload(b"{"))
    with pytest.raises(LocalError, match="'n' is there twice"):
        bodies.outgoing(Payload(b'{"n": 3, "n": 4}'))


@pytest.mark.parametrize("mime", [None, "application/json", "application/octet-stream"])
def test_data_of_other_types_is_written_unchanged(mime: str | None) -> None:
    bodies = bodies_of("rsocket+tcp://127.0.0.1:1", mime)
    assert bodies.outgoing(Payload(b"{")) == bodies.incoming(Payload(b"{")) == Payload(b"{")
