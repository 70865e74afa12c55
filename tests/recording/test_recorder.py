from __future__ import annotations

from pathlib import Path

import pytest

import weirpool
from weirpool import ApplicationError, LocalError, Payload, Service
from weirpool.recording.format import Event, events, open_recording
from weirpool.recording.recorder import Recorder


async def recorded(path: Path, route: str) -> list[Event]:
    service = Service()
    service.call("echo")(lambda request: request.data)

    @service.call("fail")
    def fail(request: Payload) -> bytes:
        raise ApplicationError(0x301, "boom", b"\xff")

    async with weirpool.serve(service, "rsocket+memory://up"):
        with Recorder(path, "there") as recorder:
            async with weirpool.bridge("rsocket+memory://up", "rsocket+memory://between", watch=recorder.watch):
                async with weirpool.connect("rsocket+memory://between") as peer:
                    try:
                        await peer.call(route, b"hello")
                    except ApplicationError:
                        pass
    file, _ = open_recording(path)
    with file:
        return [event for _, event in events(file, "it")]


async def test_call_is_a_request_an_item_and_an_end(tmp_path: Path) -> None:
    found = await recorded(tmp_path / "file", "echo")
    assert [(event.event, event.payload.data) for event in found] == [
        ("request", b"hello"),
        ("item", b"hello"),
        ("end", b""),
    ]
    assert {event.stream for event in found} == {1}


async def test_error_keeps_its_code_and_data(tmp_path: Path) -> None:
    failed = (await recorded(tmp_path / "file", "fail"))[-1]
    assert (failed.event, failed.code, failed.payload.data) == ("error", 0x301, b"\xff")


def test_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="cannot write"):
        Recorder(tmp_path / "missing" / "file", "there")


def test_a_recording_is_private_and_not_written_through_a_link(tmp_path: Path) -> None:
    existing, link = tmp_path / "existing", tmp_path / "link"
    existing.write_text("before")
    existing.chmod(0o644)
    link.symlink_to(existing)
    with pytest.raises(LocalError, match="a link"):
        Recorder(link, "there")
    assert existing.read_text() == "before"
    with Recorder(existing, "there"):
        assert existing.stat().st_mode & 0o777 == 0o600
