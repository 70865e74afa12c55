"""How the Python of each page is run: what it takes as given, and what is checked afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import dedent

__all__ = ["PROGRAMS", "SHOWN_ELSEWHERE", "Program"]


@dataclass(frozen=True)
class Program:
    """The Python of a page, as one program in a folder of its own.

    Attributes:
        before: Code that runs before the page's. `PORTS` has free ports, `given` is the module of that name.
        after: Code that runs after it, and checks what it did.
        swaps: Text of the page, and what stands for it here: `{0}` is the first of `PORTS`. Each must occur.
        output: What the page prints, if it says so.

    """

    before: str = ""
    after: str = ""
    swaps: dict[str, str] = field(default_factory=dict)
    output: str = ""


LOCAL = "rsocket+tcp://127.0.0.1:{0}"
FOLDERS = {'"data/': '"{folder}/data/'}
"""Spark's paths start from where its process was started."""
FLIGHTS = 'given.journal_of("data/flights", "flights", [json.dumps(each).encode() for each in given.FLIGHTS])\n'

SHOWN_ELSEWHERE = {
    "docs/tutorial/ticker-to-lakehouse.md": "test_tutorial.py follows it, with its files and commands",
    "docs/tutorial/lakehouse.md": "it shows parts of examples/lakehouse, which test_docs.py compares",
    "docs/how-to/clusters.md": "it needs a cluster, Spark Connect and spark-pipelines, which tests/cluster starts",
    "docs/how-to/spring.md": "the service of Spring is its peer; python -m interop.spring runs both programs",
}
"""Pages whose Python is not run here, with the reason."""

PROGRAMS = {
    "README.md": Program(
        before='given.journal_of("data/count", "count", [b"1", b"2"])',
        after='assert spark.read.parquet(f"{FOLDER}/data/parquet").count() == 2',
        swaps=FOLDERS | {"1000000": "1000"},
        output="hello world\n",
    ),
    "docs/index.md": Program(output="tick 0\ntick 1\ntick 2\n"),
    "docs/tutorial/first-stream.md": Program(
        before='given.journal_of("data/count", "count", [b"1", b"2"])', swaps=FOLDERS
    ),
    "docs/how-to/serve-and-call.md": Program(
        after="""
            service.call("echo")(lambda request: request)
            weirpool.run(given.asked(service, hundred_thousand))
            given.certificates()
            given.seen_serving(guarded, f"rsocket+tls://localhost:{PORTS[0]}?ca=ca.pem", setup="open sesame")
        """,
        swaps={"range(100_000)": "range(100)", "rsocket+tls://:7878": "rsocket+tls://localhost:{0}"},
        output="b'42'\nb'6'\n[b'0', b'1', b'2']\nhello\n0x301 not today\n",
    ),
    "docs/how-to/typed.md": Program(
        output="Quote(symbol='ACME', price=1.5)\n[Quote(symbol='ACME', price=1.0), Quote(symbol='ACME', price=1.25)]\n"
        "30.0\nSymbol(name='?') is unknown\n[('/name', 'Object missing required field `name`')]\n",
    ),
    "docs/how-to/metadata.md": Program(
        after="assert outgoing() is None and incoming(Metadata()) is None",
        output='quotes.latest for ada\nBearer() "quotes.latest for bearer" in trace 2a from Paris\nwho are you?\n',
    ),
    "docs/how-to/synchronous.md": Program(output="b'hi'\n1000\nb'6'\ncall 'slow' took more than 0.1 s\n"),
    "docs/how-to/dataframes.md": Program(
        output="[('Oslo', 3.5), ('Rome', 14.0)]\nb'8.75'\n",
    ),
    "docs/how-to/notebooks.md": Program(after="server.close()"),
    "docs/how-to/leases.md": Program(output="12\nthe peer has not granted a lease for another request"),
    "docs/how-to/old-peers.md": Program(output="[b'1', b'half time', b'2']\n"),
    "docs/how-to/observe.md": Program(
        # The registry is that of the process.
        after="import prometheus_client; prometheus_client.REGISTRY.unregister(collector)",
        output="connected: bob\n[b'0!', b'1!', b'2!']\nbob may not call admin.stop\nclosed: bob\n3 items, 1 call\n",
    ),
    "docs/how-to/reactive.md": Program(output="[b'0', b'1']\n[b'4', b'9']\ncomplete\nb'0'\nb'1'\nb'4'\n"),
    "docs/how-to/reconnect.md": Program(
        output="b'before'\nthe open call failed\nb'after'\nb'balanced'\nrsocket+memory://two up 0\nrsocket",
    ),
    "docs/how-to/resume.md": Program(
        output="b'before'\nb'sent'\nthe server was restarted; part of this may have been done\nb'after'\n",
    ),
    "docs/how-to/river.md": Program(
        after="""
            url = f"river+ws://127.0.0.1:{PORTS[0]}/river"
            given.seen_serving(main, url)
            given.beside(main, values, url)
            weirpool.run(accepted())
        """,
        swaps={"127.0.0.1:7879": "127.0.0.1:{0}"},
        output="{'sum': 3}\nb'\"ann\"'\n",
    ),
    "docs/how-to/websocket.md": Program(
        after='given.seen_serving(main, f"rsocket+ws://127.0.0.1:{PORTS[0]}/feed")',
        swaps={"0.0.0.0:7878": "127.0.0.1:{0}"},
    ),
    "docs/how-to/tls.md": Program(
        before="given.certificates()",
        after="""
            with given.serving(f"rsocket+tls://localhost:{PORTS[0]}?cert=server.pem&key=server.key"):
                weirpool.run(main())
        """,
        swaps={"localhost:7878": "localhost:{0}"},
        output="Payload(b'hello'",
    ),
    "docs/how-to/proxies.md": Program(
        after='given.seen_serving(main, f"rsocket+ws://127.0.0.1:{PORTS[0]}/feed")',
        swaps={"0.0.0.0:7878": "127.0.0.1:{0}"},
    ),
    "docs/how-to/deploy.md": Program(after="assert callable(replace)"),
    "docs/how-to/collect.md": Program(
        before="""
            service = weirpool.Service()
            served = given.serving(f"rsocket+tcp://127.0.0.1:{PORTS[0]}")
            served.__enter__()
        """,
        after="""
            weirpool.run(main())
            assert collector.progress.rows == 20
            assert weirpool.Journal("data/feeds").sources() == ["flights", "quotes"]
            served.__exit__(None, None, None)
        """,
        swaps={"localhost:7878": "127.0.0.1:{0}"},
    ),
    "docs/how-to/kafka-users.md": Program(
        before="""
            from types import SimpleNamespace
            def consumer(topic):
                yield SimpleNamespace(value=topic.encode(), key=None)
            served = given.serving(f"rsocket+tcp://127.0.0.1:{PORTS[0]}")
            served.__enter__()
        """,
        after="""
            async def ordered(peer):
                return [item.data async for item in peer.stream("orders", "a topic")]
            assert weirpool.run(given.asked(topic, ordered)) == [b"a topic"]
            served.__exit__(None, None, None)
        """,
        swaps={"127.0.0.1:7878": "127.0.0.1:{0}"},
        output='"carrier": "AA"',
    ),
    "docs/how-to/flight-users.md": Program(
        output="10000 ['data', 'metadata']\n{'symbol': ['ACME', 'GLOBEX'], 'price': [1.5, 2.5]}\n"
    ),
    "docs/how-to/receive.md": Program(
        before="""
            os.mkdir("data")
            async def save(data): ...
        """,
        after='given.seen_serving(main, f"rsocket+tcp://127.0.0.1:{PORTS[0]}")',
        swaps={"127.0.0.1:7879": "127.0.0.1:{0}"},
    ),
    "docs/how-to/history.md": Program(
        before='given.journal_of("data/quotes", "quotes", [b"1"] * 20, segment_bytes=1)',
        after="assert rows.count() == 20",
        swaps={'store="s3://lake/quotes?region=eu-central-1", keep=90 * 86_400': "target_bytes=1"} | FOLDERS,
    ),
    "docs/how-to/share-journals.md": Program(
        before=FLIGHTS
        + dedent("""
            shared = weirpool.Service()
            __import__("weirpool.serving").serving.serve_journal(shared, "data/flights")
            served = given.serving(f"rsocket+tcp://127.0.0.1:{PORTS[0]}", shared)
            served.__enter__()
            typed = spark.createDataFrame([("AA", 1.5)], "carrier string, delay double")
            typed.write.parquet(f"{FOLDER}/data/parquet")
        """),
        after="""
            assert flights.isStreaming and market.isStreaming
            given.seen_serving(main, f"rsocket+tcp://127.0.0.1:{PORTS[1]}")
            served.__exit__(None, None, None)
        """,
        swaps={
            "rsocket+tls://collector:7879?journal=eu": LOCAL,
            "rsocket+tls://collector:7879": LOCAL,
            "tcp://:7878": "tcp://127.0.0.1:{1}",
            "ws://:7879": "ws://127.0.0.1:{2}",
            **FOLDERS,
        },
    ),
    "docs/how-to/failover.md": Program(
        before=FLIGHTS
        + dedent("""
            shared = weirpool.Service()
            __import__("weirpool.serving").serving.serve_journal(shared, "data/flights")
            served = given.serving(f"rsocket+tcp://127.0.0.1:{PORTS[0]}", shared)
            served.__enter__()
        """),
        after="served.__exit__(None, None, None)",
        swaps={"rsocket+tls://one:7879|rsocket+tls://two:7879": LOCAL + "|" + LOCAL},
    ),
    "docs/how-to/spark.md": Program(
        before=FLIGHTS
        + dedent("""
            served = given.serving(f"rsocket+tcp://127.0.0.1:{PORTS[0]}")
            served.__enter__()
            os.environ["SINK_TOKEN"] = "secret"
            delays = spark.readStream.format("weirpool").load(f"{FOLDER}/data/flights").select("data")
        """),
        after="""
            assert query is not None
            for each in spark.streams.active:
                each.stop()
            assert gaps.count() == 0 and not morning.isStreaming
            served.__exit__(None, None, None)
        """,
        swaps={
            **FOLDERS,
            "rsocket+tcp://localhost:7878": LOCAL,
            "rsocket+tls://collector:7878": LOCAL,
            "rsocket+tcp://collector:7879": LOCAL,
        },
    ),
    "docs/how-to/typed-rows.md": Program(
        before=FLIGHTS
        + dedent("""
            given.journal_of("data/events", "events", [b'{"time": "2026-01-31T06:00:00Z", "source": "a"}'])
            spark.read.format("weirpool").load(f"{FOLDER}/data/flights").write.parquet(f"{FOLDER}/data/old")
        """),
        after="""
            assert late.isStreaming and counts.isStreaming
            assert [row.source for row in events.collect()] == ["a"]
            assert delays.agg({"dep_delay": "max"}).first()[0] == 142.5
            assert {row.carrier for row in old.collect()} == {"AA", "B6", "DL"}
        """,
        swaps=FOLDERS,
    ),
    "docs/reference/journal.md": Program(after="assert len(batch) == 2"),
    "docs/reference/rs-0.md": Program(output="[1.5 2.5]\n"),
    "docs/reference/reactive-streams-rules.md": Program(
        before="""
            served = given.serving(f"rsocket+tcp://127.0.0.1:{PORTS[0]}", given.ruled())
            served.__enter__()
        """,
        after="served.__exit__(None, None, None)",
        swaps={"127.0.0.1:7878": "127.0.0.1:{0}"},
        output="rule 1.1 kept",
    ),
}
