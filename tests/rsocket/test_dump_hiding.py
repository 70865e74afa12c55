from __future__ import annotations

import pytest

from weirpool import Bearer, Metadata
from weirpool.rsocket.dump import Hiding, is_secret, named
from weirpool.rsocket.extensions.mimes import AUTHENTICATION, COMPOSITE
from weirpool.wire.rsocket.dump import line
from weirpool.wire.rsocket.frames import FOLLOWS, METADATA, Frame, FrameType, ResumeFrame, SetupFrame

SECRET = Metadata("route", auth=Bearer("geheim"), entries=[("my/own", b"open")]).encode()


def shown(frame: Frame, hiding: Hiding) -> str:
    return line(frame, "rsocket-1.0", hiding.of(frame))


def payload(metadata: bytes, flags: int = 0, stream_id: int = 1) -> Frame:
    return Frame(FrameType.PAYLOAD, stream_id, flags, 0, metadata, b"data")


def test_entries_are_shown_except_credentials() -> None:
    text = shown(payload(SECRET), Hiding(COMPOSITE))
    assert '[routing="\\x05route"(6) authentication=hidden(7) my/own="open"(4)] data="data"(4)' in text


def test_set_up_and_tokens_are_hidden() -> None:
    setup = SetupFrame(
        METADATA,
        major=1,
        minor=0,
        keepalive_ms=1,
        lifetime_ms=1,
        token=b"geheim",
        metadata_mime=b"a/b",
        data_mime=b"a/b",
        metadata=b"geheim",
        data=b"geheim",
    )
    text = shown(setup, Hiding("text/plain"))
    assert "geheim" not in text
    assert text.count("hidden(6)") == 3 and 'data_mime="a/b"' in text
    resume = ResumeFrame(
        major=1, minor=0, token=b"geheim", last_received_server_position=0, first_available_client_position=0
    )
    assert "geheim" not in shown(resume, Hiding(COMPOSITE))


def test_truncated_metadata_is_hidden() -> None:
    for cut in range(1, len(SECRET)):
        hiding = Hiding(COMPOSITE)
        first = shown(payload(SECRET[:cut], FOLLOWS), hiding)
        rest = shown(payload(SECRET[cut:]), hiding)
        assert "geheim" not in first + rest
        assert f"metadata=hidden({len(SECRET) - cut})" in rest
        # Other streams, and later frames of this one, are shown.
        assert "routing=" in shown(payload(SECRET, stream_id=3), hiding)
        assert "routing=" in shown(payload(SECRET), hiding)


@pytest.mark.parametrize(("mime", "expected"), [("text/plain", 'metadata="geheim"'), (AUTHENTICATION, "hidden(6)")])
def test_metadata_of_other_types(mime: str, expected: str) -> None:
    assert expected in shown(payload(b"geheim"), Hiding(mime))


def test_invalid_composite_metadata_is_hidden() -> None:
    assert "metadata=hidden(6)" in shown(payload(b"geheim"), Hiding(COMPOSITE))


def test_names_have_no_control_characters() -> None:
    assert named("message/x.rsocket.routing.v0") == "routing"
    assert named("a\x1b[2J\n") == "a\\x1b[2J\\n"
    assert named("a b") == '"a b"'
    assert is_secret("message/x.rsocket.authentication.basic.v0")
    assert not is_secret("text/plain")
