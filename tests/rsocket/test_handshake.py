from __future__ import annotations

from typing import Any

import pytest

from weirpool import Payload, Settings
from weirpool.errors import SetupRejected
from weirpool.rsocket.dialect import REACTIVESOCKET_0_0, REACTIVESOCKET_0_2, RSOCKET_1_0
from weirpool.rsocket.handshake import MAX_TOKEN_BYTES, MIN_TOKEN_BYTES, check, established, setup_frame
from weirpool.wire.rsocket.frames import LEASE, RESUME, STRICT, Frame, FrameType, SetupFrame


def setup(**changes: Any) -> SetupFrame:
    """Return a valid SETUP with changes."""
    frame = setup_frame(RSOCKET_1_0, Settings(), Payload(), None)
    for name, value in changes.items():
        setattr(frame, name, value)
    return frame


def test_setup_frame_has_the_values_of_the_settings() -> None:
    settings = Settings(keepalive_interval=1.5, keepalive_lifetime=30, data_mime="text/plain", metadata_mime="x/y")
    frame = setup_frame(RSOCKET_1_0, settings, Payload(b"hello", b"who"), b"token")
    assert (frame.major, frame.minor) == (1, 0)
    assert (frame.keepalive_ms, frame.lifetime_ms) == (1500, 30_000)
    assert (frame.metadata_mime, frame.data_mime) == (b"x/y", b"text/plain")
    assert (frame.data, frame.metadata, frame.token) == (b"hello", b"who", b"token")
    assert frame.flags & RESUME


def test_metadata_is_composite_by_default() -> None:
    assert setup().metadata_mime == b"message/x.rsocket.composite-metadata.v0"
    assert not setup().flags & RESUME


def test_shortest_interval_is_a_millisecond() -> None:
    frame = setup_frame(RSOCKET_1_0, Settings(keepalive_interval=0.001, keepalive_lifetime=0.001), Payload(), None)
    assert (frame.keepalive_ms, frame.lifetime_ms) == (1, 1)


@pytest.mark.parametrize("version", [(1, 0), (0, 2)])
def test_versions_of_known_peers_are_accepted(version: tuple[int, int]) -> None:
    major, minor = version
    frame = setup(major=major, minor=minor)
    assert check(frame, RSOCKET_1_0, resumable=False, leases=False) is frame


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"major": 9, "minor": 9}, 0x001, "version 9.9"),
        ({"major": 1, "minor": 1}, 0x001, "version 1.1"),
        ({"stream_id": 5}, 0x001, "SETUP on stream 5"),
        ({"keepalive_ms": 0}, 0x001, "more than 0"),
        ({"lifetime_ms": 0}, 0x001, "more than 0"),
        ({"flags": RESUME}, 0x003, "does not resume"),
        ({"flags": LEASE}, 0x003, "does not grant leases"),
    ],
)
def test_unsupported_setups_are_rejected_with_their_code(changes: dict[str, int], code: int, message: str) -> None:
    # THREATS 22, 24, 25, 26
    with pytest.raises(SetupRejected, match=message) as refused:
        check(setup(**changes), RSOCKET_1_0, resumable=False, leases=False)
    assert refused.value.code == code


def test_resumable_session_is_accepted_if_supported() -> None:
    frame = setup_frame(RSOCKET_1_0, Settings(), Payload(), bytes(16))
    assert check(frame, RSOCKET_1_0, resumable=True, leases=False) is frame


def test_size_of_a_token_is_limited() -> None:
    # THREATS 27
    accepted, refused_sizes = (MIN_TOKEN_BYTES, MAX_TOKEN_BYTES), (0, MIN_TOKEN_BYTES - 1, MAX_TOKEN_BYTES + 1, 65_535)
    for size in (*accepted, *refused_sizes):
        frame = setup_frame(RSOCKET_1_0, Settings(), Payload(), bytes(size))
        if size in accepted:
            assert check(frame, RSOCKET_1_0, resumable=True, leases=False) is frame
            continue
        with pytest.raises(SetupRejected, match=f"token of {size} bytes") as refused:
            check(frame, RSOCKET_1_0, resumable=True, leases=False)
        assert refused.value.code == 0x003


def test_error_names_another_first_frame() -> None:
    with pytest.raises(SetupRejected, match="the first frame is CANCEL on stream 3, not SETUP"):
        check(Frame(FrameType.CANCEL, 3), RSOCKET_1_0, resumable=False, leases=False)


def test_leases_are_requested_and_accepted_if_supported() -> None:
    frame = setup_frame(RSOCKET_1_0, Settings(lease=True), Payload(), None)
    assert frame.flags & LEASE
    assert check(frame, RSOCKET_1_0, resumable=False, leases=True) is frame


def test_drafts_send_their_version_and_text_metadata() -> None:
    frame = setup_frame(REACTIVESOCKET_0_2, Settings(), Payload(), None)
    assert ((frame.major, frame.minor), frame.metadata_mime) == ((0, 2), b"text/plain")
    assert check(frame, REACTIVESOCKET_0_2, resumable=False, leases=False) is frame
    frame.major, frame.minor = 1, 0
    with pytest.raises(SetupRejected, match=r"version 1\.0"):
        check(frame, REACTIVESOCKET_0_2, resumable=False, leases=False)


@pytest.mark.parametrize("strict", [False, True])
def test_strict_clients_set_the_flag(strict: bool) -> None:
    # ReactiveSocket 0.2, SETUP Frame: the S flag.
    settings = Settings(strict=strict, lease=True)
    frame = setup_frame(REACTIVESOCKET_0_2, settings, Payload(), None)
    assert (bool(frame.flags & STRICT), bool(frame.flags & LEASE)) == (strict, True)
    assert established(frame, settings, REACTIVESOCKET_0_2).strict is strict


def test_first_draft_has_no_keepalive() -> None:
    frame = SetupFrame(major=0, minor=0, metadata_mime=b"text/plain", data_mime=b"text/plain")
    assert check(frame, REACTIVESOCKET_0_0, resumable=False, leases=False) is frame
