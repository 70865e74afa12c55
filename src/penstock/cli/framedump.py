"""Every frame of a connection as a line, in and out: what --debug shows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Final

from ..connection import Connection
from ..errors import ProtocolError
from ..settings import DEFAULT_SETTINGS, Settings
from ..tap import Tap
from ..texts import shown
from .framelines import RSocketWay, Way, way_of

if TYPE_CHECKING:
    from ..rsocket.dialect import Dialect

__all__ = ["FrameDump"]

SENT, RCVD = "sent", "rcvd"
REACTIVE_STREAMS: Final = "reactive-streams"


class FrameDump(Tap):
    """Writes a line for each frame: when, which way, and what it says.

    A frame is also a message of River, or one of reactive-streams-io. Credentials, what a client says at set-up, and
    the tokens and ids by which sessions are resumed are hidden.

    Args:
        write: Gets each line, without its end; nothing in it can move a terminal's cursor.
        secrets: Show what is secret, too.
        messages: The client's transport carries messages.
        settings: For what a server reads version 0.2 as.
        clock: Returns the time of day.

    """

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        secrets: bool = False,
        messages: bool = False,
        settings: Settings = DEFAULT_SETTINGS,
        clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        self._write = write
        self._secrets = secrets
        self._messages = messages
        self._settings = settings
        self._clock = clock
        self._known: dict[Connection, _Connection] = {}
        # The last words of a connection come behind its end.
        self._last: tuple[Connection, _Connection] | None = None

    def opened(self, connection: Connection) -> None:
        """Get ready for its frames."""
        self._known[connection] = _Connection(connection, self._messages, self._settings, self._secrets)
        self._tell(connection, "open", str(connection.address))

    def closed(self, connection: Connection, error: Exception | None) -> None:
        """Tell why."""
        self._last = (connection, self._known.pop(connection))
        self._tell(connection, "over", str(error or "closed by this side"))

    def resumed(self, connection: Connection) -> None:
        """Forget frames of which the lost link had brought a part."""
        self._known[connection].relink()
        self._tell(connection, "open", "over another link")

    def refused(self, address: str, reason: str) -> None:
        """Tell why."""
        self._line(f"{address} over {reason}")

    def received(self, connection: Connection, data: bytes) -> None:
        """Show the frames that are whole now."""
        self._show(connection, RCVD, data)

    def sent(self, connection: Connection, data: bytes) -> None:
        """Show the frames that are whole now."""
        self._show(connection, SENT, data)

    def _show(self, connection: Connection, way: str, data: bytes) -> None:
        known = self._known.get(connection)
        if known is None and self._last is not None and self._last[0] is connection:
            known = self._last[1]
        if known is not None:
            for text in known.lines(way, data):
                self._tell(connection, way, text)

    def _tell(self, connection: Connection, what: str, text: str) -> None:
        # A client has one connection at a time.
        where = "" if connection.is_client else f"{connection.address} "
        self._line(f"{where}{what} {text}")

    def _line(self, text: str) -> None:
        # Errors have a peer's words in them.
        safe = shown(text).replace("\n", " ")
        self._write(f"{self._clock().time().isoformat('milliseconds')} {safe}")


class _Connection:
    """What is known of one connection: what it speaks, and how far each direction has come."""

    def __init__(self, connection: Connection, messages: bool, settings: Settings, secrets: bool) -> None:
        self._connection = connection
        self._settings = settings
        self._secrets = secrets
        self._ways: dict[str, Way] = {}
        self._head = b""
        self._new: Callable[[], Way] | None = way_of(connection.protocol, secrets)
        if self._new is None and connection.is_client:
            from ..rsocket.dialect import DIALECTS, RSOCKET_1_0

            dialect = DIALECTS.get(connection.protocol, RSOCKET_1_0)
            self._speak(dialect.over_messages() if messages else dialect)
        self.relink()

    def relink(self) -> None:
        """Begin with whole frames again."""
        if self._new is not None:
            self._ways = {way: self._new() for way in (SENT, RCVD)}

    def lines(self, way: str, data: bytes) -> list[str]:
        """Return what is to be told of the frames that are whole with `data`."""
        if not self._ways:
            self._head += data
            data = self._head
            self._detect()
        return self._ways[way].lines(data) if self._ways else []

    def _detect(self) -> None:
        """Learn what the client of a server speaks: the first bytes are a client's."""
        from ..rsocket.detect import detect
        from ..rsocket.dialect import DIALECTS

        protocol = self._connection.protocol
        try:
            dialect = detect(self._head, self._settings, DIALECTS if protocol == "rsocket" else (protocol,))
        except ProtocolError:
            return
        if dialect is not None:
            self._head = b""
            self._speak(dialect)
            self.relink()

    def _speak(self, dialect: Dialect) -> None:
        mime = self._connection.metadata_mime or dialect.metadata_mime
        self._new = lambda: RSocketWay(dialect, mime, self._secrets)
