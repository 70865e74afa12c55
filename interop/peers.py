"""The peers: how to install each, start it as a server, and run it as a client."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .harness import LEASE, SLOW
from .pythons import PythonMissing, python_of

__all__ = [
    "DRAFT",
    "MAVEN",
    "OURS",
    "OURS_RIVER",
    "PEERS",
    "RIVER",
    "RIVER_SERVER",
    "ROOT",
    "SPRING",
    "SPRING_BOTH",
    "TICKER",
    "TRANSPORTS",
    "TYPESCRIPT",
    "Peer",
    "PeerAbsent",
    "PeerMissing",
    "is_newer",
    "run_installer",
    "runtime_version",
]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TRANSPORTS = {"tcp": "TCP", "ws": "WebSocket"}
"""The transports: their names in programs and in the report."""
RIVER = {"river-json": "JSON", "river-msgpack": "MessagePack"}
"""River over WebSocket, with each of its codecs."""
RSOCKET = (*TRANSPORTS, LEASE)
INSTALL_TIMEOUT = 600.0
"""Time limit for npm, Maven or Cargo in seconds; the first run downloads everything."""

NPM = "npm ci --omit-lockfile-registry-resolved --ignore-scripts --no-audit --no-fund --loglevel=error".split()
CARGO = "cargo build --quiet".split()
PACKAGE = "mvn -q -B -Dstyle.color=never package".split()
MAVEN = "mvn -q -B -Dstyle.color=never compile dependency:copy-dependencies".split()
JAVA = "java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp java/target/classes:java/target/dependency/*".split()


class PeerMissing(Exception):
    """A peer cannot be installed on this machine."""


class PeerAbsent(Exception):
    """A peer cannot run on this machine, and installing packages would not change that."""


@dataclass(frozen=True)
class Peer:
    """One implementation.

    Args:
        name: Its name for ``--peer``.
        title: Its name in the report.
        server: The command that takes a transport and prints its address, which ends with the port. Empty if the peer
            is only a client.
        client: The command that takes a transport, a host and two ports, and prints the results of the checks.
        folder: The working folder of both.
        version: Returns its version.
        install: Installs it. Raises PeerMissing if that fails, and PeerAbsent if it cannot run on this machine.
        steps: The steps of a run in which it takes part.

    """

    name: str
    title: str
    server: list[str]
    client: list[str]
    folder: Path
    version: Callable[[], str]
    install: Callable[[], None]
    steps: tuple[str, ...] = RSOCKET

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that it supports."""
        return ("client", "server") if self.server else ("client",)


def run_installer(command: list[str], folder: Path) -> None:
    """Run a command that installs something in `folder`.

    Raises:
        PeerMissing: It is not on PATH, failed, or took too long.

    """
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False)
    except FileNotFoundError:
        raise PeerMissing(f"{command[0]} is not on PATH") from None
    except subprocess.TimeoutExpired:
        raise PeerMissing(f"{' '.join(command)} took longer than {INSTALL_TIMEOUT:.0f} s") from None
    if done.returncode != 0:
        output = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[0]
        raise PeerMissing(f"{' '.join(command)} failed: {output}")


def is_newer(made: Path, sources: list[Path]) -> bool:
    """Return True if what was made from these sources exists, and is not older than any of them."""
    return made.exists() and made.stat().st_mtime >= max(source.stat().st_mtime for source in sources)


def _javascript(
    name: str, title: str, package: str, server: str = "server.js", steps: tuple[str, ...] = RSOCKET
) -> Peer:
    folder = HERE / name

    def install() -> None:
        if not is_newer(folder / "node_modules" / ".package-lock.json", [folder / "package-lock.json"]):
            run_installer(NPM, folder)

    def installed() -> str:
        return str(json.loads((folder / "node_modules" / package / "package.json").read_text())["version"])

    serving = ["node", server] if server else []
    return Peer(name, title, serving, ["node", "client.js"], folder, installed, install, steps)


def _java() -> Peer:
    folder = HERE / "java"
    built = folder / "target" / "classes" / "interop"

    def install() -> None:
        sources = [folder / "pom.xml", *sorted(folder.glob("src/**/*.java"))]
        if not (is_newer(built / "Client.class", sources) and (folder / "target" / "dependency").is_dir()):
            run_installer(MAVEN, folder)

    def installed() -> str:
        jar = next((folder / "target" / "dependency").glob("rsocket-core-*.jar"))
        return jar.stem.removeprefix("rsocket-core-")

    return Peer(
        "java",
        "rsocket-java",
        [*JAVA, "interop.Server"],
        [*JAVA, "interop.Client"],
        HERE,
        installed,
        install,
    )


def _spring() -> Peer:
    """Return the publisher of the tutorial, which builds it again: this downloads what that needs."""
    folder = ROOT / "examples" / "lakehouse" / "publisher"
    sources = [folder / "pom.xml", *sorted(folder.glob("src/**/*"))]

    def install() -> None:
        if not is_newer(folder / "target" / "publisher-1.jar", sources):
            run_installer(PACKAGE, folder)

    def installed() -> str:
        found = re.search(r"<parent>.*?<version>(.*?)</version>", (folder / "pom.xml").read_text(), re.DOTALL)
        return found[1] if found else "unknown"

    return Peer("spring", "Spring Boot", ["java"], [], folder, installed, install, ("lakehouse",))


def _spring_both() -> Peer:
    """Return the programs of the page about Spring, of which each is a service or a client."""
    folder = ROOT / "examples" / "spring"
    sources = [folder / "pom.xml", *sorted(folder.glob("src/**/*"))]

    def install() -> None:
        made = folder / "target" / "classes" / "example" / "Client.class"
        if not (is_newer(made, sources) and (folder / "target" / "dependency").is_dir()):
            run_installer(MAVEN, folder)

    run = [sys.executable, "-m", "interop.spring"]
    return Peer("spring-both", "Spring", [], run, ROOT, SPRING.version, install, ("spring",))


def _rust() -> Peer:
    folder = HERE / "rust"
    built = folder / "target" / "debug"

    def install() -> None:
        sources = [folder / "Cargo.toml", *sorted(folder.glob("src/**/*.rs"))]
        if not is_newer(built / "client", sources):
            run_installer(CARGO, folder)

    def installed() -> str:
        pinned = tomllib.loads((folder / "Cargo.toml").read_text())["dependencies"]["rsocket_rust"]
        return str(pinned).removeprefix("=")

    server, client = [str(built / "server")], [str(built / "client")]
    return Peer("rust", "rsocket-rust", server, client, folder, installed, install, ("tcp", LEASE))


def _python(name: str, title: str, distribution: str, server: str, client: str) -> Peer:
    """Return a peer of this interpreter; `server` and `client` are modules."""

    def installed() -> str:
        return importlib.metadata.version(distribution)

    def install() -> None:
        try:
            installed()
        except importlib.metadata.PackageNotFoundError:
            raise PeerMissing(f"{distribution} is not installed; run make install") from None

    run = [sys.executable, "-m"]
    return Peer(name, title, [*run, server], [*run, client], ROOT, installed, install)


def _apart(
    name: str, title: str, step: str, place: str = "", least: tuple[int, int] = (3, 11), arguments: tuple[str, ...] = ()
) -> Peer:
    """Return a Python client with a separate environment, and without a server.

    Args:
        name: As for `Peer`.
        title: As for `Peer`.
        step: The step in which it takes part.
        place: The name of its folder, if it differs from `name`.
        least: The version of Python that its package needs.
        arguments: The first arguments of its program.

    """
    folder = HERE / (place or name)
    python = folder / ".venv" / "bin" / "python"
    wanted = folder / "requirements.txt"
    done = folder / ".venv" / "installed"

    def install() -> None:
        if is_newer(done, [wanted]):
            return
        try:
            base = python_of(least)
        except PythonMissing as error:
            raise PeerAbsent(str(error)) from None
        run_installer([base, "-m", "venv", "--clear", ".venv"], folder)
        run_installer([str(python), "-m", "pip", "install", "--quiet", "--requirement", wanted.name], folder)
        done.touch()

    def installed() -> str:
        return wanted.read_text().strip().partition("==")[2]

    return Peer(name, title, [], [str(python), "client.py", *arguments], folder, installed, install, (step,))


def runtime_version(*command: str) -> str:
    """Return the first version number in the output of `command`, or "none" if it is not installed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        return "none"
    found = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return found.group() if found else "unknown"


OURS = _python("weirpool", "Weirpool", "weirpool", "interop.ours_server", "interop.ours_client")
OURS_RIVER = _python("weirpool-river", "Weirpool", "weirpool", "interop.ours_server", "interop.ours_river")
RIVER_SERVER = _javascript("river-js", "@replit/river", "@replit/river", "server.js", ("river-errors",))
SPRING = _spring()
TICKER = _javascript("../examples/ticker/page", "Chromium", "rsocket-core", "", ("browser",))
TYPESCRIPT = _javascript("typescript", "TypeScript", "typescript", "", ("typescript",))
SPRING_BOTH = _spring_both()
DRAFT = _apart("py-0.2.0", "rsocket-py 0.2.0", "draft")
PEERS = {
    peer.name: peer
    for peer in (
        _python("py", "rsocket-py", "rsocket", "interop.py.server", "interop.py.client"),
        _javascript("js-0.0.27", "rsocket-js 0.0", "rsocket-core"),
        _javascript("js-1.0", "rsocket-js 1.0", "rsocket-core"),
        _java(),
        _rust(),
        # Their servers speak only v1.1, and our client only v2.0.
        _javascript("river-js", "@replit/river", "@replit/river", "", (*RIVER, SLOW)),
        _apart("river-py", "replit-river", "river-msgpack", least=(3, 12), arguments=("v2.0",)),
        _apart("river-py-1.1", "replit-river 1.1", "river-msgpack", "river-py", (3, 12), ("v1.1",)),
    )
}
