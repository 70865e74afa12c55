"""A reader of reactive-streams-io, written only from docs/reference/rs-0.md. It shares no code with the package.

It reads everything that one side has sent, and rejects what the page does not permit.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class Wrong(Exception):
    """The page does not permit this."""


@dataclass
class Told:
    """The messages of a publisher to one subscription.

    Attributes:
        size: The announced size of its elements.
        elements: The complete elements, with their metadata.
        end: "", "onComplete", or "onError" followed by its text.

    """

    size: int
    elements: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    end: str = ""
    parts: dict[int, list[bytes]] = field(default_factory=dict)
    marks: dict[int, bytes | None] = field(default_factory=dict)
    mark: bytes | None = None

    def add(self, element: bytes, mark: bytes | None) -> None:
        if self.size and len(element) != self.size:
            raise Wrong(f"an element has {len(element)} bytes, not {self.size}")
        self.elements.append((element, mark))


@dataclass
class Asked:
    """The requests of a subscriber to one publisher."""

    publisher: str
    demand: int
    mark: bytes | None
    canceled: bool = False


class Reader:
    """Everything that one side has sent.

    Attributes:
        version, extensions: The fields of its hello.
        told: By number, the messages to each subscription that had it, in order.
        asked: By number, the side's own subscriptions, in order.
        goodbye: The reason of its goodbye.
        types: The types of all messages.

    """

    def __init__(self, data: bytes, by_client: bool, metadata: bool) -> None:
        self.data = data
        self.at = 0
        self.metadata = metadata
        self.told: dict[int, list[Told]] = {}
        self.asked: dict[int, list[Asked]] = {}
        self.goodbye: str | None = None
        self.annotated: tuple[int, bytes] | None = None
        self.types: set[int] = set()
        self.hello(1 if by_client else 2)
        while self.at < len(data):
            self.message(self.varint())

    # Fields.

    def varint(self) -> int:
        value = 0
        for index in range(9):
            octet = self.take(1)[0]
            value += (octet & 127) << 7 * index
            if octet < 128:
                if index and not octet:
                    raise Wrong("a varint is longer than it need be")
                return value
        raise Wrong("a varint of more than 9 bytes")

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise Wrong("the last message is not whole")
        self.at += count
        return self.data[self.at - count : self.at]

    def bytes(self) -> bytes:
        return self.take(self.varint())

    def string(self) -> str:
        return self.bytes().decode("utf-8", "strict")

    # Messages.

    def hello(self, type: int) -> None:
        first = self.varint()
        if first == 13:
            self.message(first)
            return
        self.types.add(first)
        if first != type:
            raise Wrong(f"the first message is of type {first}")
        self.version = self.varint()
        self.extensions = [self.varint() for _ in range(self.varint())]

    def message(self, type: int) -> None:
        self.types.add(type)
        if self.goodbye is not None:
            raise Wrong("something follows goodbye")
        if self.annotated is not None and type != 3:
            raise Wrong("subscribeMetadata without its subscribe")
        if type in (64, 65) and not self.metadata:
            raise Wrong("the extension was not agreed on")
        if type == 13:
            self.goodbye = self.string()
        elif type in (3, 4, 5, 64):
            self.subscriber(type)
        elif type in (6, 7, 8, 9, 10, 11, 12, 65):
            self.publisher(type)
        else:
            raise Wrong(f"a message of type {type}")

    def subscriber(self, type: int) -> None:
        if type == 3:
            route, id = self.string(), self.varint()
            mark = None
            if self.annotated is not None:
                if self.annotated[0] != id:
                    raise Wrong("subscribeMetadata of another subscription")
                mark, self.annotated = self.annotated[1], None
            self.asked.setdefault(id, []).append(Asked(route, self.varint(), mark))
            return
        id = self.varint()
        if type == 64:
            self.annotated = (id, self.bytes())
            return
        if id not in self.asked:
            raise Wrong("nothing was subscribed with that id")
        last = self.asked[id][-1]
        if type == 5:
            if last.canceled:
                raise Wrong("cancel came twice")
            last.canceled = True
        else:
            more = self.varint()
            if not more or last.canceled:
                raise Wrong("a request of nothing, or after cancel")
            last.demand += more

    def publisher(self, type: int) -> None:
        id = self.varint()
        if type == 6:
            self.told.setdefault(id, []).append(Told(self.varint()))
            return
        if id not in self.told:
            raise Wrong("subscribed must come first")
        stream = self.told[id][-1]
        if stream.end:
            raise Wrong("something follows the end of its stream")
        if type == 8:
            if stream.parts:
                raise Wrong("an element is not whole")
            stream.end = "onComplete"
        elif type == 9:
            stream.end = f"onError {self.string()}"
        elif type == 65:
            if stream.mark is not None:
                raise Wrong("metadata twice")
            stream.mark = self.bytes()
        else:
            self.element(type, stream)

    def element(self, type: int, stream: Told) -> None:
        if type == 7:
            stream.add(self.take(stream.size) if stream.size else self.bytes(), self.mark_of(stream))
        elif type == 10:
            count = self.varint()
            if not stream.size or not count:
                raise Wrong("nothing can be packed here")
            for _ in range(count):
                stream.add(self.take(stream.size), self.mark_of(stream))
        else:
            number = self.varint()
            if number not in stream.parts:
                stream.parts[number] = []
                stream.marks[number] = self.mark_of(stream)
            stream.parts[number].append(self.bytes())
            if type == 12:
                stream.add(b"".join(stream.parts.pop(number)), stream.marks.pop(number))

    @staticmethod
    def mark_of(stream: Told) -> bytes | None:
        mark, stream.mark = stream.mark, None
        return mark
