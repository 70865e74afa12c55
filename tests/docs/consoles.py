"""How the commands of each page are run: what they need, and which cannot be run, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["CONSOLES", "USUAL", "Console"]

ROOT_ONLY = "it needs a folder or a group of the system"
ENDLESS = "it would run until it is interrupted"
MACHINE = "its exit code depends on what the machine has"
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
        swaps={"-d 1000000 --journal": "-d 1000 --journal"}, skipped={" ticker ": ENDLESS, "penstock doctor": MACHINE}
    ),
    "docs/how-to/install.md": Console(skipped={"penstock doctor": MACHINE}),
    "docs/tutorial/first-stream.md": Console(swaps={"-d 1000000": "-d 1000"}),
    "docs/tutorial/lakehouse.md": Console(
        skipped={"penstock": "Maven builds its publisher; make interop and tests/spark run the parts"}
    ),
    "docs/tutorial/ticker-to-lakehouse.md": Console(skipped={"penstock": "test_tutorial.py follows it"}),
    "docs/how-to/asgi.md": Console(skipped={"penstock call": "tests/aio/test_mounting.py runs such applications"}),
    "docs/how-to/bench.md": Console(
        skipped={"penstock bench": "tests/cli/test_bench.py runs it, for less than ten seconds"}
    ),
    "docs/how-to/bridge.md": Console(skipped={"penstock": "tests/cli/test_bridge.py runs bridges"}),
    "docs/how-to/record-and-replay.md": Console(
        skipped={"penstock": "test_record.py, test_replay.py and test_mock.py in tests/cli run them"}
    ),
    "docs/how-to/reflection.md": Console(skipped={"penstock": "tests/cli/test_describe.py runs them"}),
    "docs/how-to/spring.md": Console(skipped={"penstock": "interop/spring.py runs both sides"}),
    "docs/how-to/try-it.md": Console(skipped={"penstock ui": ENDLESS, "penstock serve": ENDLESS}),
    "docs/how-to/typescript.md": Console(skipped={"penstock": "interop/generated.py and interop/ticker.py run them"}),
    "docs/how-to/collect.md": Console(publisher=True, audited=True),
    "docs/how-to/deploy.md": Console(skipped={"penstock serve app:service": ELSEWHERE, "penstock top": ENDLESS}),
    "docs/how-to/failover.md": Console(skipped={"penstock collect": ELSEWHERE}),
    "docs/how-to/feeds.md": Console(skipped={"penstock collect": ELSEWHERE, "penstock top": ENDLESS}),
    "docs/how-to/observe.md": Console(
        swaps={"--metrics 9090": "--metrics {1}"},
    ),
    "docs/how-to/receive.md": Console(skipped={"penstock collect --listen": ENDLESS}),
    "docs/how-to/river.md": Console(
        pages={"app.py": 1},
        swaps={"127.0.0.1:7879": "127.0.0.1:{0}"},
        skipped={"penstock collect": "its route is not in the example", "penstock decode": ELSEWHERE},
    ),
    "docs/how-to/share-journals.md": Console(
        publisher=True,
        journal=True,
        swaps={
            "rsocket+tls://collector:7879": "rsocket+tcp://127.0.0.1:{1}",
            "/mnt/backup": "backup",
            "localhost:7878": "127.0.0.1:{0}",
        },
        skipped={"penstock collect": ENDLESS, "penstock stream": ENDLESS, "--follow": ENDLESS},
    ),
    "docs/how-to/spark.md": Console(publisher=True, skipped={"penstock collect --listen": ENDLESS}),
    "docs/how-to/tls.md": Console(
        certificates=True,
        swaps={"localhost:7878": "localhost:{0}"},
        skipped={"penstock call rsocket+tls://example.org": ELSEWHERE},
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
            "penstock fire rsocket+tcp://127.0.0.1:{0} log -d @report.txt": ELSEWHERE,
            "penstock call rsocket+tls": ELSEWHERE,
            "penstock call rsocket+tcp://127.0.0.1:{0} echo -d hello --auth bearer:env:TOKEN": "its output has times",
            "river+tcp": ELSEWHERE,
            "penstock doctor": MACHINE,
            "penstock serve app:service": "its ports are the reader's; other pages run it",
            "penstock playground": "README.md runs it",
            "penstock top": ENDLESS,
            "penstock journal dump": "the rows are not as old as that",
            "penstock journal lag": "no reader has read it",
            "penstock journal s": ELSEWHERE,
            "penstock journal trim": ELSEWHERE,
            "penstock journal cp": ELSEWHERE,
            "penstock journal verify": ELSEWHERE,
            "penstock journal repair": ELSEWHERE,
            "penstock journal forget": ELSEWHERE,
            "penstock river": "docs/how-to/typed.md runs it",
            "penstock rules": ELSEWHERE,
            "penstock completion": "it writes to the reader's home",
            "penstock context": "tests/cli/test_context.py runs it",
            "penstock call quotes.latest": "tests/cli/test_context.py runs contexts",
            "penstock call @dev": "tests/cli/test_context.py runs contexts",
            "penstock describe": "tests/cli/test_describe.py runs it",
            "penstock ui": ENDLESS,
            "penstock record": "tests/cli/test_record.py runs it",
            "penstock replay": "tests/cli/test_replay.py runs it",
            "penstock mock": "tests/cli/test_mock.py runs it",
            "penstock bench": "tests/cli/test_bench.py runs it",
            "penstock codegen": "tests/cli/test_codegen.py runs it",
        },
    ),
}
"""The pages with commands of `penstock` that need something, or that show some that are not run. All others are run as
they are, at a free port. `make`, `pip` and commands of the system are not run.
"""
