"""An RSocket client and server with a resumable session, and links that are cut."""

from __future__ import annotations

__all__ = ["TOKEN", "World"]

TOKEN = b"t" * 16


class World:
    """A resumable client and its server, over links that are cut after a number of bytes."""

    def __init__(self, build, client=None, checkpoint=None, accept=None, **settings) -> None:
        self.build = build
        self.payload = build.module("weirpool.payload").Payload
        self.kind = build.module("weirpool.kinds").Kind
        self.settings = build.module("weirpool.settings").Settings(resume=True, **settings)
        self.now = 0.0
        protocols = build.module("weirpool.protocols")
        self.accept = protocols.detectors("rsocket", self.settings)
        self.client = protocols.client_session("rsocket", self.settings, random=TOKEN)
        self.server = None
        self.acceptor = None
        self.items: dict[tuple[str, int], list[bytes]] = {}
        self.ends: list[tuple[str, int]] = []
        self.requests: list[object] = []
        self.closed: list[object] = []
        self.refused = False
        self.up = False
        # Bytes in transit.
        self.there = b""
        self.back = b""

    def connect(self) -> None:
        self.acceptor = self.accept()
        self.acceptor.link_up(self.now)
        self.client.link_up(self.now)
        self.up = True

    def subscribe(self, credit):
        """Connect, open a stream, and return it with a checkpoint that is committed."""
        self.connect()
        stream = self.client.open(self.kind.STREAM, "s", self.payload(), credit)
        self.drive()
        checkpoint = self.client.checkpoint(stream, 0)
        self.client.commit()
        self.drive()
        return stream, checkpoint

    def replace_client(self, checkpoint) -> None:
        """Resume at `checkpoint` in another process. What the former client had received is lost."""
        protocols = self.build.module("weirpool.protocols")
        self.client = protocols.client_session("rsocket", self.settings, checkpoint=checkpoint, secret=TOKEN)
        self.items.clear()

    def cut(self) -> None:
        self.client.link_down(self.now, None)
        if self.server is not None:
            self.server.link_down(self.now, None)
        self.acceptor = None
        self.up = False
        self.there = self.back = b""

    def drive(self, budget: int = 1 << 60) -> int:
        """Move bytes in both directions until nothing moves or `budget` is used up; return the rest of it."""
        while True:
            self.collect()
            if self.up:
                self.there += b"".join(self.client.take_output())
                self.back += b"".join(self.server.take_output()) if self.server is not None else b""
            if budget == 0 or not (self.there or self.back):
                return budget
            there, self.there = self.there[:budget], self.there[budget:]
            budget -= len(there)
            if there:
                self.deliver(there)
            back, self.back = self.back[:budget], self.back[budget:]
            budget -= len(back)
            self.client.receive(back, self.now)

    def deliver(self, data: bytes) -> None:
        if self.acceptor is None:
            self.server.receive(data, self.now)
            return
        try:
            session = self.acceptor.receive(data, self.now)
        except self.build.module("weirpool.errors").ProtocolError:
            self.client.receive(self.acceptor.farewell, self.now)
            self.refused = True
            return
        if session is not None:
            self.server, self.acceptor = session, None

    def collect(self) -> None:
        for side, session in (("client", self.client), ("server", self.server)):
            for event in [] if session is None else session.take_events():
                name = type(event).__name__
                found = self.items.setdefault((side, event.stream_id), [])
                if name == "ItemReceived":
                    found.append(event.payload.data)
                elif name == "RunReceived":
                    found += [payload.data for payload in event.run.payloads()]
                elif name == "Requested":
                    self.requests.append(event)
                elif name == "Closed" and side == "client":
                    self.closed.append(event.error)
                if name in ("Completed", "Failed") or (name == "ItemReceived" and event.done):
                    self.ends.append((side, event.stream_id))
