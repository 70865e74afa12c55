"""Who is served: a server's acceptor looks at each set-up before anything of its connection is served."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..connection import Connection
from ..errors import LimitExceeded, PenstockError, SetupRejected
from ..events import Closed, Established, Event, MetadataPushed, Requested, Unlinked
from ..payload import Payload
from ..transports import Link
from .exchanges import without_requests
from .service import Service

if TYPE_CHECKING:
    from .driver import Driver

__all__ = ["REJECTED", "Acceptor", "Admitted", "Gate", "Setup", "certificate_of"]

logger = logging.getLogger("penstock.aio")

# RSocket 1.0, Error Codes.
UNSUPPORTED: Final = 0x002
REJECTED: Final = 0x003


@dataclass(frozen=True, slots=True)
class Setup:
    """What a client says of itself when it connects, and what its link says of it.

    Attributes:
        payload: Data and metadata of the set-up.
        metadata_mime: What the connection's metadata is.
        data_mime: What the connection's data is.
        strict: The client wants to be refused if anything of this is not understood (ReactiveSocket 0.2, S flag).
        understood: We know both MIME types.
        address: The client's.
        certificate: The client's TLS certificate in DER form; None where there is none.
        protocol: What the client speaks, as URLs name it: ``rsocket``.
        previous: What the acceptor made of this client the last time, where the protocol has it asked again (River: at
            every handshake of a session); None the first time.

    """

    payload: Payload
    metadata_mime: str
    data_mime: str
    strict: bool
    understood: bool
    address: str
    certificate: bytes | None
    protocol: str = ""
    previous: Any = None


@dataclass(frozen=True, slots=True)
class Admitted:
    """What an acceptor may say of a client that it lets in.

    Attributes:
        identity: Who it is: handlers find it as `identity` of their :class:`~penstock.Connection`.
        service: What serves it; None: the server's service.

    """

    identity: Any = None
    service: Service | None = None


Verdict: TypeAlias = "Service | Admitted | None"
Acceptor = Callable[[Setup], "Verdict | Awaitable[Verdict]"]
"""Looks at a set-up: a function or a coroutine function. It raises to refuse the client: what a SetupRejected says is
told to it; of any other error it learns only that it is refused. It may return the service for this connection, or an
:class:`Admitted`, which tells handlers whose it is; None means the server's service. A coroutine that takes longer than
`Settings.acceptor_timeout` is canceled, and its connection closed."""


def certificate_of(link: Link) -> bytes | None:
    """Return the peer's TLS certificate in DER form, if it has shown one."""
    tls_object = link.get_extra_info("ssl_object")
    certificate: bytes | None = None if tls_object is None else tls_object.getpeercert(True)
    return certificate


def accept(setup: Setup) -> None:
    """Accept everybody, unless a client insists on what we do not know: the acceptor where there is no other."""
    if setup.strict and not setup.understood:
        what = f"metadata is {setup.metadata_mime!r} and data is {setup.data_mime!r}"
        raise SetupRejected(f"not understood, and the set-up is strict: {what}", UNSUPPORTED)


class Gate:
    """Holds a server's connection until its set-up is accepted.

    It may be closed again by :meth:`shut`, when the client says anew who it is.

    Args:
        driver: The connection's.
        connection: The connection.
        acceptor: Decides; None: everybody is let in.

    Attributes:
        certificate: The client's, on its present link.
        asked: The set-up that the acceptor was asked about last.

    """

    __slots__ = ("_acceptor", "_connection", "_driver", "_held", "_task", "asked", "certificate")

    def __init__(self, driver: Driver, connection: Connection, acceptor: Acceptor | None) -> None:
        self._driver = driver
        self._connection = connection
        self._acceptor = acceptor or accept
        self._held: list[Event] = []
        self._task: asyncio.Task[None] | None = None
        self.certificate: bytes | None = None
        self.asked: Established | None = None
        self.shut()

    @property
    def waits(self) -> bool:
        """Whether the acceptor is thinking."""
        return self._task is not None

    def shut(self) -> None:
        """Hold what happens from now on, and what is said."""
        self._driver.gate = self

    def pass_through(self, happened: list[Event]) -> list[Event]:
        """Take what has happened; return what may be handed on now.

        A client that has said all that it wanted may have closed the connection with the same read: what it asked
        for waits for the acceptor all the same, and so does the end. Where it has asked for nothing, the end passes,
        and the acceptor is canceled.
        """
        driver = self._driver
        for event in happened:
            if not isinstance(event, Unlinked):
                self._held.append(event)
            elif driver.link is not None:
                # It concerns this link, and not the one that may have come when the rest is handed on.
                driver.link.abort()
        newest = self._newest()
        if self._task is not None:
            # The client may have come by another link meanwhile: that is not read either.
            driver.hold(True)
        elif newest is not None:
            ready = self._ask(newest)
            if ready:
                return ready
        if self._task is not None and any(isinstance(event, Requested | MetadataPushed) for event in self._held):
            return []
        return self._end()

    def abandon(self) -> None:
        """Await the acceptor no more, because this side ends the connection; nothing that is held is served."""
        ended = self._end() or without_requests(self._held)
        self._held = []
        self._driver.dispatch(ended)

    def _end(self) -> list[Event]:
        """Return the end of the connection and of its streams, where it has come; then nothing else is awaited."""
        if not any(isinstance(event, Closed) for event in self._held):
            return []
        if self._task is not None:
            self._task.cancel()
        ended, self._held = without_requests(self._held), []
        self._driver.gate = None
        return ended

    def _newest(self) -> Established | None:
        """Return the newest set-up, if the acceptor was not asked about it."""
        for event in reversed(self._held):
            if isinstance(event, Established):
                return None if event is self.asked else event
        return None

    def _ask(self, event: Established) -> list[Event]:
        """Ask the acceptor about the set-up; return what may be handed on."""
        self.asked = event
        setup = Setup(
            payload=event.payload,
            metadata_mime=event.metadata_mime,
            data_mime=event.data_mime,
            strict=event.strict,
            understood=event.understood,
            address=self._driver.name,
            certificate=self.certificate,
            protocol=self._connection.protocol,
            previous=self._connection.identity,
        )
        try:
            answer = self._acceptor(setup)
        except Exception as error:
            self._refuse(error)
            return []
        if inspect.isawaitable(answer):
            self._driver.hold(True)
            self._task = self._driver.loop.create_task(self._await(answer))
            return []
        return self._open(answer)

    async def _await(self, answer: Awaitable[Verdict]) -> None:
        driver = self._driver
        limit = driver.settings.acceptor_timeout
        timeout = asyncio.timeout(limit)
        try:
            async with timeout:
                verdict = await answer
        except Exception as error:
            self._task = None
            if isinstance(error, TimeoutError) and timeout.expired():
                # No refusal: a client that comes again may have more luck.
                self._give_up(LimitExceeded(f"the acceptor took longer than acceptor_timeout ({limit:g} s)"))
            else:
                self._refuse(error)
            # The link's own goodbye is to be read.
            driver.hold(False)
            driver.dispatch(self._end())
        else:
            self._task = None
            held = self._open(verdict)
            if driver.gate is None:
                driver.hold(False)
                driver.dispatch(held)
        driver.flush()

    def _open(self, verdict: Verdict) -> list[Event]:
        """Let everything through from now on, unless the client has said another thing meanwhile."""
        newest = self._newest()
        if newest is not None:
            if self.asked is None or newest.payload != self.asked.payload:
                return self._ask(newest)
            # A client that came again because this took long: it would take as long once more.
            self.asked = newest
        if isinstance(verdict, Admitted):
            self._connection.identity = verdict.identity
            verdict = verdict.service
        if verdict is not None:
            self._driver.serve(verdict)
        self._driver.gate = None
        held, self._held = self._held, []
        return [event for event in held if event is self.asked or not isinstance(event, Established)]

    def _refuse(self, error: Exception) -> None:
        """End the session; the client learns why as far as that is meant for it."""
        if not isinstance(error, SetupRejected):
            if not isinstance(error, PenstockError):
                logger.error("the acceptor failed", exc_info=error)
            error = SetupRejected("the server refused the set-up", REJECTED)
        elif error.code is None:
            error = SetupRejected(error.message, REJECTED)
        self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._held = without_requests(self._held)
        driver = self._driver
        # What the session has said meanwhile, a sign of life above all, would be taken for acceptance.
        driver.session.take_output()
        logger.warning("%s refused: %s", driver.name or "a peer", error)
        driver.session.close(driver.loop.time(), error)
