"""The six sources: one for each protocol and codec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["SOURCES", "Source"]


@dataclass(frozen=True)
class Source:
    """A publisher, the link to it, its collector and its log, which share a name.

    Attributes:
        name: The name.
        protocol: The protocol in the URL.
        options: The options of the URL.
        resumes: A session outlives its links and its collector, so that no item is lost with them.
        stored: The publisher stores its sessions on disk.
        prefix: A prefix of each item, which makes it a string in the codec.

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
