from __future__ import annotations

import pytest

from weirpool import LocalError, Settings, SetupRejected
from weirpool.reactivestreams.handshake import EXTENSIONS, METADATA, agreed, check_version, hello, ours
from weirpool.wire.reactivestreams.codec import LAYOUTS, Message, Type, encode


def test_hello_has_version_and_extensions() -> None:
    assert encode(hello(True, [])).hex() == "010000"
    assert encode(hello(False, [METADATA])).hex() == "02000101"


def test_extensions_are_off_unless_both_sides_list_them() -> None:
    assert ours(Settings()) == []
    offered = ours(Settings(extensions=("metadata",)))
    assert offered == [METADATA]
    assert agreed(Message(Type.SERVER_HELLO, ids=(7, 1, 99)), offered) == [METADATA]
    assert agreed(Message(Type.SERVER_HELLO, ids=(7, 99)), offered) == []
    assert agreed(Message(Type.SERVER_HELLO, ids=(1,)), []) == []


def test_unknown_extension_is_rejected() -> None:
    with pytest.raises(LocalError, match="'metdata'; known are metadata"):
        ours(Settings(extensions=("metdata",)))


def test_extensions_have_unique_ids_and_types() -> None:
    types = [type for extension in EXTENSIONS.values() for type in extension.layouts]
    assert len(set(types)) == len(types)
    assert min(types) >= 64 and not set(types) & LAYOUTS.keys()
    assert len({extension.id for extension in EXTENSIONS.values()}) == len(EXTENSIONS)


def test_other_version_is_rejected() -> None:
    check_version(Message(Type.CLIENT_HELLO))
    with pytest.raises(SetupRejected, match="version 1 of reactive-streams-io"):
        check_version(Message(Type.CLIENT_HELLO, number=1))


def test_unknown_and_doubled_extensions_of_a_peer_are_ignored() -> None:
    # docs/reference/rs-0.md, Hello 5.
    offered = ours(Settings(extensions=("metadata",)))
    assert agreed(Message(Type.CLIENT_HELLO, 0, 0, b"", (99, METADATA.id, METADATA.id)), offered) == [METADATA]
