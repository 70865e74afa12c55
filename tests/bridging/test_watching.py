from __future__ import annotations

from typing import Any

import weirpool
from weirpool import Payload, Service
from weirpool.bridging.watching import Unwatched


class Notes:
    """A watcher that notes what it is told."""

    def __init__(self, notes: list[Any]) -> None:
        self._notes = notes

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self._notes.append((name, *arguments))


async def test_watcher_sees_both_directions_and_the_end() -> None:
    service, notes = Service(), []  # type: ignore[var-annotated]

    @service.channel("t.back")
    async def back(request: Payload, items: weirpool.Items) -> Any:
        async for item in items:
            yield item

    async with weirpool.serve(service, "rsocket+memory://up"):
        between = weirpool.bridge("rsocket+memory://up", "rsocket+memory://between", watch=lambda _: Notes(notes))
        async with between, weirpool.connect("rsocket+memory://between") as peer:
            async for _ in peer.channel("t.back", b"", [b"1"], credit=7):
                pass
    assert [note for note in notes if note[0] != "demanded"] == [
        ("sent", Payload(b"1")),
        ("sent_end",),
        ("received", Payload(b"1")),
        ("ended", None),
    ]
    assert ("demanded", 7) in notes


def test_nothing_is_watched_by_default() -> None:
    unwatched = Unwatched(None)  # type: ignore[arg-type]
    notes: list[Any] = [unwatched.sent(Payload()), unwatched.received(Payload()), unwatched.ended(None)]  # type: ignore[func-returns-value]
    assert notes == [None] * 3
