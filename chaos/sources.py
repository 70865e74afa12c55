"""The six sources: one for each protocol and codec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["SOURCES", "Source"]


@dataclass(frozen=True)
class Source:
    """A publisher, the link to it, its collector and its log, which all have one name.

    Attributes:
        name: What they are called.
        protocol: As in a URL.
        options: Of the URL.
        resumes: A session outlives its links and its collector: neither may cost an item.
        stored: The publisher keeps its sessions on disk.
        prefix: What goes before each item, so that the codec carries it as a string.

    """

    name: str
    protocol: str
    options: str = ""
    resumes: bool = True
    stored: bool = False
    prefix: bytes = b""

    def url(self, place: str) -> str:
        """Return the URL of the source at `place`, such as ``tcp://127.0.0.1:7878``."""
        return f"{self.protocol}+{place}{self.options}"


SOURCES: Final = (
    Source("rsocket", "rsocket", stored=True),
    Source("rsocket-0.2", "reactivesocket-0.2"),
    Source("rsocket-0.0", "reactivesocket-0.0", resumes=False),
    Source("reactive-streams", "reactive-streams", resumes=False),
    Source("river-json", "river", stored=True),
    Source("river-msgpack", "river", "?codec=msgpack", prefix=b"\xb4"),
)
