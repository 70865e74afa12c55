"""`weirpool mock`: serves a fake service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ..errors import LocalError
from .console import note
from .groups import grouped
from .replay import speed_of
from .schemas import KIND_OF, procedures_of
from .serve import ServeOptions, until_stopped
from .values import duration

if TYPE_CHECKING:
    from ..aio.server import Server
    from ..aio.service import Service
    from ..tap import Tap

__all__ = ["mock"]

UNLIMITED = 0


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """How the mock answers."""

    seed: Annotated[int, Option("--seed", metavar="N", help="The same seed gives the same values.")] = 0
    rate: Annotated[
        float,
        Option("--rate", metavar="N", min=0, help="Items per second of each stream; 0: as fast as they are taken."),
    ] = 10.0
    items: Annotated[int, Option("--items", metavar="N", min=0, help="Items of each stream; 0: it does not end.")] = (
        UNLIMITED
    )
    errors: Annotated[
        float, Option("--errors", metavar="P", min=0, max=1, help="The part of requests that fail, from 0 to 1.")
    ] = 0.0
    latency: Annotated[
        float, Option("--latency", metavar="SECONDS", parser=duration(), help="Time before each response.")
    ] = 0.0
    speed: Annotated[
        str, Option("--speed", metavar="FACTOR", help="Of a recording: how much faster than recorded, or max.")
    ] = "1"
    loop: Annotated[bool, Option("--loop", help="Of a recording: begin streams again when they end.")] = False

    def service(self, source: str) -> Service:
        """Return the service for a source."""
        if _is_recording(source):
            from ..recording.replaying import Recording, Replay

            return Replay(Recording.read(Path(source)), speed_of(self.speed), self.loop).service
        from ..mocking.service import MockOptions, mock_service

        procedures = {route: (KIND_OF[each["type"]], each) for route, each in procedures_of(source).items()}
        if not procedures:
            raise LocalError(f"{source} has no procedures to mock")
        for route, (kind, _) in procedures.items():
            note(f"{kind.name.lower():8} {route}")
        options = MockOptions(
            seed=self.seed,
            rate=self.rate or None,
            items=self.items or None,
            errors=self.errors,
            latency=self.latency,
        )
        return mock_service(procedures, options)


@grouped
def mock(
    source: Annotated[
        str,
        Argument(
            help="A schema or description as JSON, MODULE:NAME or FILE.py:NAME of a service, the URL or @NAME of a "
            "server that describes itself, or a recording."
        ),
    ],
    urls: Annotated[list[str], Argument(help="URLs to listen on; the system chooses a port for port 0.")],
    answers: AnswerOptions,
    options: ServeOptions,
) -> None:
    """Serve a fake service with plausible values, which are the same each time.

    Example: weirpool mock schema.json rsocket+tcp://localhost:7878 --rate 100 --errors 0.01

    Example: weirpool mock app:service river+ws://localhost:7879/river --latency 0.05
    """
    from ..aio.loop import run
    from ..aio.server import serve

    settings = options.settings()
    addresses, acceptor = options.door(urls)
    service = answers.service(source)

    def serving(taps: list[Tap]) -> Server:
        return serve(service, *addresses, settings=settings, acceptor=acceptor, taps=taps)

    run(until_stopped(serving, options, settings))


def _is_recording(source: str) -> bool:
    """Return whether a source is a file of `weirpool record`."""
    path = Path(source)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(22) == b'{"weirpool_recording":'
