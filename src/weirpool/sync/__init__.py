"""The blocking API: the names of `weirpool`, for scripts, notebooks and threads. May import the top files and `aio`.

One event loop per process, in a background thread, runs all connections. Everything here may be used from any thread,
also from one that runs an event loop of its own.
"""

from .balance import Balancer, balance
from .client import connect
from .loop import run
from .peer import Peer
from .server import Server, serve
from .stream import Stream
from .typed_peer import TypedPeer, TypedStream, typed

__all__ = [
    "Balancer",
    "Peer",
    "Server",
    "Stream",
    "TypedPeer",
    "TypedStream",
    "balance",
    "connect",
    "run",
    "serve",
    "typed",
]
