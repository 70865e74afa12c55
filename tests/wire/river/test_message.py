from __future__ import annotations

from tests.builds import Build


def test_absent_fields_are_none(build: Build) -> None:
    message = build.module("weirpool.wire.river.message").Message("i", "f", "t", 1, 2, "s", 8, b"{}")
    assert (message.id, message.from_, message.to, message.stream_id) == ("i", "f", "t", "s")
    assert (message.seq, message.ack, message.control_flags, message.payload) == (1, 2, 8, b"{}")
    assert (message.service_name, message.procedure_name, message.tracing, message.ok_payload) == (
        None,
        None,
        None,
        None,
    )
