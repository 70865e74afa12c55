from __future__ import annotations

from weirpool import Kind
from weirpool.kinds import KIND_NAMES


def test_requesters_send_items_in_uploads_and_channels() -> None:
    assert [kind for kind in Kind if kind.sends_items] == [Kind.UPLOAD, Kind.CHANNEL]


def test_responders_send_items_in_streams_and_channels() -> None:
    assert [kind for kind in Kind if kind.answers_items] == [Kind.STREAM, Kind.CHANNEL]


def test_kind_numbers_are_stable() -> None:
    # Checkpoints in journals contain these numbers.
    assert [(kind.name, int(kind)) for kind in Kind] == [
        ("CALL", 1),
        ("FIRE", 2),
        ("STREAM", 3),
        ("UPLOAD", 4),
        ("CHANNEL", 5),
    ]


def test_names_are_those_of_the_kinds() -> None:
    assert list(KIND_NAMES) == [kind.name.lower() for kind in Kind]
