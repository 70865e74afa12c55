from __future__ import annotations

from weirpool import Connection, Payload


def test_connection_has_defaults() -> None:
    there = Connection("rsocket", "tcp://host:7878", True, Payload(b"me"), "mime/m", "mime/d")
    assert (there.protocol, there.address, there.is_client) == ("rsocket", "tcp://host:7878", True)
    assert (there.setup, there.metadata_mime, there.data_mime) == (Payload(b"me"), "mime/m", "mime/d")
    here = Connection("rsocket", "", False)
    assert (here.setup, here.metadata_mime, here.data_mime) == (Payload(), "", "")
    assert (here.certificate, here.error) == (None, None)


def test_connection_repr_shows_direction() -> None:
    assert repr(Connection("rsocket", "127.0.0.1", False)) == "<Connection from 127.0.0.1 by rsocket>"
    assert repr(Connection("rsocket", "tcp://host:1", True)) == "<Connection to tcp://host:1 by rsocket>"
