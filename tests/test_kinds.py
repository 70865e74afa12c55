from __future__ import annotations

from penstock import Kind


def test_those_who_send_more_than_the_request_are_uploads_and_channels() -> None:
    assert [kind for kind in Kind if kind.sends_items] == [Kind.UPLOAD, Kind.CHANNEL]


def test_those_who_get_items_back_are_streams_and_channels() -> None:
    assert [kind for kind in Kind if kind.answers_items] == [Kind.STREAM, Kind.CHANNEL]


def test_numbers_stay_what_they_are() -> None:
    # Checkpoints in journals hold them.
    assert [(kind.name, int(kind)) for kind in Kind] == [
        ("CALL", 1),
        ("FIRE", 2),
        ("STREAM", 3),
        ("UPLOAD", 4),
        ("CHANNEL", 5),
    ]
