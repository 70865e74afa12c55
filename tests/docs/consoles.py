"""How the commands of each page are run: what they need, and which cannot be run, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CONSOLES", "USUAL", "Console"]

ROOT_ONLY = "it needs a folder or a group of the system"
ENDLESS = "it would run until it is interrupted"
MACHINE = "its exit code depends on what the machine has"
CHECKOUT = "the tests run in a checkout; test_distribution.py installs what is published"
ELSEWHERE = "it names a host, a file or a store that exists only on the reader's side"


@dataclass(frozen=True)
class Console:
    """The commands of a page, in order, in a folder of their own.

    Attributes:
        publisher: Whether a service with `flights` and other routes runs at the first port.
        audited: Whether that service keeps digests of what it sends.
        journal: Whether a journal with the log `flights` is served at the second port.
        certificates: Whether the folder has server.pem, server.key and ca.pem.
        pages: Files to make of the page's own Python blocks: their names, and how many blocks.
        swaps: Text of the page, and what stands for it here: `{0}` is the first free port.
        skipped: Parts of commands that are not run, each with the reason.

    """

    publisher: bool = False
    audited: bool = False
    journal: bool = False
    certificates: bool = False
    pages: dict[str, int] = field(default_factory=dict)
    swaps: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


USUAL = {
    "127.0.0.1:7878": "127.0.0.1:{0}",
    "localhost:7878": "127.0.0.1:{0}",
    "examples/interop.py": "{root}/examples/interop.py",
}
"""What stands for the usual addresses and files, on all pages that do not say otherwise."""

CONSOLES = {
    "README.md": Console(
        swaps={"-d 1000000 --journal": "-d 1000 --journal"},
        skipped={"git clone": CHECKOUT, "make install": CHECKOUT, " ticker ": ENDLESS, "weirpool doctor": MACHINE},
    ),
    "docs/how-to/install.md": Console(skipped={"git clone": CHECKOUT, "weirpool doctor": MACHINE}),
    "docs/tutorial/first-stream.md": Console(swaps={"-d 1000000": "-d 1000"}),
    "docs/tutorial/lakehouse.md": Console(
        skipped={"weirpool": "Maven builds its publisher; make interop and tests/spark run the parts"}
    ),
    "docs/tutorial/ticker-to-lakehouse.md": Console(skipped={"weirpool": "test_tutorial.py follows it"}),
    "docs/how-to/asgi.md": Console(skipped={"weirpool call": "tests/aio/test_mounting.py runs such applications"}),
    "docs/how-to/bench.md": Console(
        skipped={"weirpool bench": "tests/cli/test_bench.py runs it, for less than ten seconds"}
    ),
    "docs/how-to/bridge.md": Console(skipped={"weirpool": "tests/cli/test_bridge.py runs bridges"}),
    "docs/how-to/record-and-replay.md": Console(
        skipped={"weirpool": "test_record.py, test_replay.py and test_mock.py in tests/cli run them"}
    ),
    "docs/how-to/reflection.md": Console(skipped={"weirpool": "tests/cli/test_describe.py runs them"}),
    "docs/how-to/spring.md": Console(skipped={"weirpool": "interop/spring.py runs both sides"}),
    "docs/how-to/try-it.md": Console(skipped={"weirpool ui": ENDLESS, "weirpool serve": ENDLESS}),
    "docs/how-to/typescript.md": Console(skipped={"weirpool": "interop/generated.py and interop/ticker.py run them"}),
    "docs/how-to/collect.md": Console(publisher=True, audited=True),
    "docs/how-to/deploy.md": Console(skipped={"weirpool serve app:service": ELSEWHERE, "weirpool top": ENDLESS}),
    "docs/how-to/failover.md": Console(skipped={"weirpool collect": ELSEWHERE}),
    "docs/how-to/feeds.md": Console(skipped={"weirpool collect": ELSEWHERE, "weirpool top": ENDLESS}),
    "docs/how-to/observe.md": Console(
        swaps={"--metrics 9090": "--metrics {1}"},
    ),
    "docs/how-to/receive.md": Console(skipped={"weirpool collect --listen": ENDLESS}),
    "docs/how-to/river.md": Console(
        pages={"app.py": 1},
        swaps={"127.0.0.1:7879": "127.0.0.1:{0}"},
        skipped={"weirpool collect": "its route is not in the example", "weirpool decode": ELSEWHERE},
    ),
    "docs/how-to/share-journals.md": Console(
        publisher=True,
        journal=True,
        swaps={
            "rsocket+tls://collector:7879": "rsocket+tcp://127.0.0.1:{1}",
            "/mnt/backup": "backup",
            "localhost:7878": "127.0.0.1:{0}",
        },
        skipped={"weirpool collect": ENDLESS, "weirpool stream": ENDLESS, "--follow": ENDLESS},
    ),
    "docs/how-to/spark.md": Console(publisher=True, skipped={"weirpool collect --listen": ENDLESS}),
    "docs/how-to/tls.md": Console(
        certificates=True,
        swaps={"localhost:7878": "localhost:{0}"},
        skipped={"weirpool call rsocket+tls://example.org": ELSEWHERE},
    ),
    "docs/how-to/transports.md": Console(
        certificates=True,
        swaps={"127.0.0.1:7878": "127.0.0.1:{0}", "localhost:7878": "localhost:{1}"},
        skipped={
            "rsocket+unix": ROOT_ONLY,
        },
    ),
    "docs/how-to/typed.md": Console(pages={"quotes.py": 1}),
    "docs/how-to/websocket.md": Console(swaps={"localhost:7878": "127.0.0.1:{0}"}),
    "docs/reference/cli.md": Console(
        swaps={"-d 1000000": "-d 1000", "--delay 0.5": "--delay 0.01"},
        publisher=True,
        audited=True,
        skipped={
            "weirpool fire rsocket+tcp://127.0.0.1:{0} log -d @report.txt": ELSEWHERE,
            "weirpool call rsocket+tls": ELSEWHERE,
            "weirpool call rsocket+tcp://127.0.0.1:{0} echo -d hello --auth bearer:env:TOKEN": "its output has times",
            "river+tcp": ELSEWHERE,
            "weirpool doctor": MACHINE,
            "weirpool serve app:service": "its ports are the reader's; other pages run it",
            "weirpool playground": "README.md runs it",
            "weirpool top": ENDLESS,
            "weirpool journal dump": "the rows are not as old as that",
            "weirpool journal lag": "no reader has read it",
            "weirpool journal s": ELSEWHERE,
            "weirpool journal trim": ELSEWHERE,
            "weirpool journal cp": ELSEWHERE,
            "weirpool journal verify": ELSEWHERE,
            "weirpool journal repair": ELSEWHERE,
            "weirpool journal forget": ELSEWHERE,
            "weirpool river": "docs/how-to/typed.md runs it",
            "weirpool rules": ELSEWHERE,
            "weirpool completion": "it writes to the reader's home",
            "weirpool context": "tests/cli/test_context.py runs it",
            "weirpool call quotes.latest": "tests/cli/test_context.py runs contexts",
            "weirpool call @dev": "tests/cli/test_context.py runs contexts",
            "weirpool describe": "tests/cli/test_describe.py runs it",
            "weirpool ui": ENDLESS,
            "weirpool record": "tests/cli/test_record.py runs it",
            "weirpool replay": "tests/cli/test_replay.py runs it",
            "weirpool mock": "tests/cli/test_mock.py runs it",
            "weirpool bench": "tests/cli/test_bench.py runs it",
            "weirpool codegen": "tests/cli/test_codegen.py runs it",
        },
    ),
}
"""The pages with commands of `weirpool` that need something, or that show some that are not run. All others are run as
they are, at a free port. `make`, `pip` and commands of the system are not run.
"""
