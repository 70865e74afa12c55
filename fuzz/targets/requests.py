"""HTTP/2 connections above h2. The first two bytes of an input are the side and trust, and the size of pieces.

Lines of headers follow, and after an empty line any frames. They are what the peer says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from hpack import Decoder, Encoder
from hyperframe.frame import DataFrame, Frame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame
from tests.builds import Build

from fuzz.outcomes import pieces
from fuzz.targets import Difference

LINES: Final = True
ADDRESS: Final = "10.1.1.1"
TRUSTED: Final = ("10.0.0.0/8",)
ORIGINS: Final = ("https://app.example",)
PATH: Final = "/a b"
TYPE: Final = "application/rsocket"
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
WORDS: Final = (
    b"\norigin: https://app.example",
    b"\nx-forwarded-for: 192.0.2.1",
    b"\nforwarded: for=192.0.2.1",
    b"\nhost: 127.0.0.1",
    b"\n\n",
    b"%20",
    b"?a",
    b"\0\0\0\1\4\0\0\0\1",
)
REQUEST: Final = f":method: POST\n:scheme: http\n:authority: localhost:80\n:path: /a%20b\ncontent-type: {TYPE}".encode()
RESPONSE: Final = f":status: 200\ncontent-type: {TYPE}".encode()


def seeds() -> Iterator[bytes]:
    """Yield requests and responses, alone and with frames behind them."""
    frames: tuple[Frame, ...] = (
        DataFrame(1, b"first"),
        DataFrame(1, b"last", flags=["END_STREAM"]),
        RstStreamFrame(1, 8),
        PingFrame(0, bytes(8)),
        SettingsFrame(0, {4: 10}),
        GoAwayFrame(0, 1, 2, b"bye"),
    )
    after = [frame.serialize() for frame in frames]
    for options in (0, 2):
        for size in (0, 9):
            yield bytes((options, size)) + REQUEST + b"\n\n" + b"".join(after[:3])
    for more in (
        b"\norigin: http://localhost:80",
        b"\norigin: https://evil.example",
        b"\nforwarded: for=192.0.2.1, for=x",
    ):
        yield b"\2\0" + REQUEST + more + b"\n\n" + after[0]
    for old, new in ((b"POST", b"GET"), (b"/a", b"/b"), (b"rsocket", b"json"), (b"/a%20b", b"/a%20b?c=d")):
        yield b"\0\0" + REQUEST.replace(old, new) + b"\n\n"
    for number, each in enumerate(after):
        yield bytes((number % 2, 0)) + (RESPONSE if number % 2 else REQUEST) + b"\n\n" + each
        yield bytes((1 - number % 2, 0)) + (REQUEST if number % 2 else RESPONSE) + b"\n\n" + each
    yield b"\1\0:status: 503\nreason: full\n\n"
    yield b"\1\3:status: 200\ncontent-type: text/html\n\n" + after[0]


class Clockless(asyncio.SelectorEventLoop):
    """An event loop in which no time passes, so that an outcome does not depend on it."""

    def time(self) -> float:
        """Return the same time."""
        return 0.0


class Socket:
    """The link of a connection, which writes down what is done to it."""

    alpn = None

    def __init__(self, told: list[object]) -> None:
        self.told = told
        self.written = b""

    def is_closing(self) -> bool:
        """Return False: nothing is lost here."""
        return False

    def write(self, data: bytes) -> None:
        """Write down output."""
        self.written += data

    def get_write_buffer_size(self) -> int:
        """Return 0: all output leaves at once."""
        return 0

    def pause_reading(self) -> None:
        """Do nothing: all input is passed on when it comes."""

    def resume_reading(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Write down the call."""
        self.told.append("close")

    def abort(self) -> None:
        """Write down the call."""
        self.told.append("abort")

    def progress(self) -> tuple[int, int]:
        """Return that nothing waits."""
        return 0, 0

    def get_extra_info(self, name: str) -> None:
        """Return nothing."""
        return None


class Receiver:
    """The receiver of a link, which answers and writes down what happens."""

    def __init__(self, told: list[object]) -> None:
        self.told = told
        self.link: Any = None

    def link_made(self, link: Any) -> None:
        """Write down the address of the client."""
        self.told.append(("made", getattr(link, "address", "")))
        self.link = link

    def received(self, data: bytes) -> None:
        """Send the data back; close the link if it says so."""
        self.told.append(data)
        self.link.write(data)
        if data.startswith(b"close"):
            self.link.close()

    def writing_paused(self) -> None:
        """Write down the call."""
        self.told.append("paused")

    def writing_resumed(self) -> None:
        """Write down the call."""
        self.told.append("resumed")

    def link_lost(self, error: Exception | None) -> None:
        """Write down the error."""
        self.told.append(repr(error))


def outcome(build: Build, data: bytes) -> object:
    """Return what links and their receivers are told, and what is written."""
    with asyncio.Runner(loop_factory=Clockless) as runner:
        return runner.run(_talk(build, data))


async def _talk(build: Build, data: bytes) -> object:
    options, size = (data[0], data[1]) if len(data) > 1 else (0, 0)
    module = build.module("weirpool.transports.http2")
    told: list[object] = []
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failures.append(context))
    socket = Socket(told)
    connection = _connection(build, module, options, told)
    # However slow this machine is, no input waits for its turn.
    connection._turns.clock = lambda: 0.0
    connection.link_made(socket)
    for piece in pieces(_said(data[2:], bool(options & 1)), size):
        connection.received(piece)
        await asyncio.sleep(0)
    connection.link_lost(None)
    await asyncio.sleep(0)
    if failures:
        raise AssertionError(failures)
    if options & 1:
        told.append(repr(connection.opened.exception()))
    return told, socket.written


def _connection(build: Build, module: Any, options: int, told: list[object]) -> Any:
    url = build.module("weirpool.urls").parse_url(f"rsocket+h2c://localhost:80{PATH.replace(' ', '%20')}")
    trusted = TRUSTED if options & 2 else ()
    settings = build.module("weirpool.settings").Settings(origins=ORIGINS, trusted_proxies=trusted)
    if options & 1:
        return module.ClientConnection(url, Receiver(told), settings)
    listener = module.Http2Listener(url, lambda address, hang_up: Receiver(told), settings)
    return module.ServerConnection(listener, None if options & 2 else Receiver(told), ADDRESS)


def _headers(data: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return the headers in an input, and the frames after them."""
    head, _, frames = data.partition(b"\n\n")
    fields = []
    for line in head.split(b"\n"):
        name, _, value = line[1:].partition(b":")
        fields.append((line[:1] + name, value.strip(b" ")))
    return fields, frames


def _said(data: bytes, by_server: bool) -> bytes:
    """Return what the peer says: its preface, headers and frames."""
    fields, frames = _headers(data)
    headers = HeadersFrame(1, Encoder().encode(fields, huffman=False), flags=["END_HEADERS"])
    return (b"" if by_server else PREFACE) + SettingsFrame(0).serialize() + headers.serialize() + frames


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare the status of the first answer with the one that the headers deserve."""
    status = _status(found[1])
    if len(data) < 2 or data[0] & 1 or not status:
        return
    fields, _ = _headers(data[2:])
    names = {name for name, _ in fields}
    origins = {value.decode("latin-1").lower() for name, value in fields if name == b"origin"}
    path = b"".join(value for name, value in fields if name == b":path").partition(b"?")[0]
    wrong = [
        404 if unquote(path.decode("latin-1"), "latin-1") != PATH else 0,
        405 if (b":method", b"POST") not in fields else 0,
        403 if not origins <= {*ORIGINS} else 0,
        415 if [_type(value) for name, value in fields if name == b"content-type"] != [TYPE.encode()] else 0,
    ]
    deserved = {next((each for each in wrong if each), 200)}
    if deserved == {403}:
        # It may be that of the server itself.
        deserved.add(wrong[3] or 200)
    if data[0] & 2 and names & {b"forwarded", b"x-forwarded-for"}:
        deserved.add(400)
    if status not in deserved:
        raise Difference(f"the answer is {status}, not one of {deserved}")


def _type(value: bytes) -> bytes:
    return value.partition(b";")[0].strip().lower()


def _status(output: bytes) -> int:
    """Return the status of the answer to the first request; 0 if there is none."""
    while len(output) >= 9:
        frame, size = Frame.parse_frame_header(memoryview(output[:9]))
        if isinstance(frame, HeadersFrame):
            frame.parse_body(memoryview(output[9 : 9 + size]))
            return int(dict(Decoder().decode(frame.data, raw=True))[b":status"]) if frame.stream_id == 1 else 0
        output = output[9 + size :]
    return 0
