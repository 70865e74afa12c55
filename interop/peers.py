"""The peers: how each is installed, started as a server, and run as a client."""

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

__all__ = ["DRAFT", "OURS", "PEERS", "ROOT", "TRANSPORTS", "Peer", "PeerMissing", "runtime_version"]

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TRANSPORTS = {"tcp": "TCP", "ws": "WebSocket"}
"""What carries the frames, as the programs call it, and as the report does."""
INSTALL_TIMEOUT = 600.0
"""Seconds for npm, Maven or Cargo: the first run fetches everything."""

NPM = "npm ci --omit-lockfile-registry-resolved --ignore-scripts --no-audit --no-fund --loglevel=error".split()
CARGO = "cargo build --quiet".split()
MAVEN = "mvn -q -B -Dstyle.color=never compile dependency:copy-dependencies".split()
JAVA = "java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp java/target/classes:java/target/dependency/*".split()


class PeerMissing(Exception):
    """A peer cannot be installed here."""


@dataclass(frozen=True)
class Peer:
    """One implementation.

    Args:
        name: What ``--peer`` calls it.
        title: What the report calls it.
        server: The command that takes a transport and prints where it listens, ending with the port.
        client: The command that takes a transport, a host and two ports and prints the checks.
        folder: Where both run.
        version: Returns which version it is.
        install: Makes it ready; raises PeerMissing when that fails.
        transports: What its programs speak over.

    """

    name: str
    title: str
    server: list[str]
    client: list[str]
    folder: Path
    version: Callable[[], str]
    install: Callable[[], None]
    transports: tuple[str, ...] = tuple(TRANSPORTS)


def _run_installer(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False)
    except FileNotFoundError:
        raise PeerMissing(f"{command[0]} is not on PATH") from None
    except subprocess.TimeoutExpired:
        raise PeerMissing(f"{' '.join(command)} took longer than {INSTALL_TIMEOUT:.0f} s") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "it said nothing").splitlines()[0]
        raise PeerMissing(f"{' '.join(command)} failed: {said}")


def _is_newer(made: Path, sources: list[Path]) -> bool:
    return made.exists() and made.stat().st_mtime >= max(source.stat().st_mtime for source in sources)


def _javascript(name: str, version: str) -> Peer:
    folder = HERE / name

    def install() -> None:
        if not _is_newer(folder / "node_modules" / ".package-lock.json", [folder / "package-lock.json"]):
            _run_installer(NPM, folder)

    def installed() -> str:
        package = folder / "node_modules" / "rsocket-core" / "package.json"
        return str(json.loads(package.read_text())["version"])

    return Peer(
        name,
        f"rsocket-js {version}",
        ["node", "server.js"],
        ["node", "client.js"],
        folder,
        installed,
        install,
    )


def _java() -> Peer:
    folder = HERE / "java"
    built = folder / "target" / "classes" / "interop"

    def install() -> None:
        sources = [folder / "pom.xml", *sorted(folder.glob("src/**/*.java"))]
        if not (_is_newer(built / "Client.class", sources) and (folder / "target" / "dependency").is_dir()):
            _run_installer(MAVEN, folder)

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


def _rust() -> Peer:
    folder = HERE / "rust"
    built = folder / "target" / "debug"

    def install() -> None:
        sources = [folder / "Cargo.toml", *sorted(folder.glob("src/**/*.rs"))]
        if not _is_newer(built / "client", sources):
            _run_installer(CARGO, folder)

    def installed() -> str:
        pinned = tomllib.loads((folder / "Cargo.toml").read_text())["dependencies"]["rsocket_rust"]
        return str(pinned).removeprefix("=")

    server, client = [str(built / "server")], [str(built / "client")]
    return Peer("rust", "rsocket-rust", server, client, folder, installed, install, ("tcp",))


def _python(name: str, title: str, distribution: str, server: str, client: str) -> Peer:
    """Return a peer of this interpreter; `server` and `client` are modules."""

    def installed() -> str:
        return importlib.metadata.version(distribution)

    def install() -> None:
        try:
            installed()
        except importlib.metadata.PackageNotFoundError:
            raise PeerMissing(f"{distribution} is not installed: run make install") from None

    run = [sys.executable, "-m"]
    return Peer(name, title, [*run, server], [*run, client], ROOT, installed, install)


def _draft() -> Peer:
    """Return rsocket-py of 2018, which has an environment of its own, and no server here."""
    folder = HERE / "py-0.2.0"
    python = folder / ".venv" / "bin" / "python"
    wanted = folder / "requirements.txt"
    done = folder / ".venv" / "installed"

    def install() -> None:
        if not _is_newer(done, [wanted]):
            _run_installer([sys.executable, "-m", "venv", ".venv"], folder)
            _run_installer([str(python), "-m", "pip", "install", "--quiet", "--requirement", wanted.name], folder)
            done.touch()

    def installed() -> str:
        return wanted.read_text().strip().partition("==")[2]

    client = [str(python), "client.py"]
    return Peer("py-0.2.0", "rsocket-py 0.2.0", [], client, folder, installed, install, ("tcp",))


def runtime_version(*command: str) -> str:
    """Return the version number that `command` tells first, or "none" where it is not installed."""
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        return "none"
    found = re.search(r"\d+(\.\d+)+", said.stdout + said.stderr)
    return found.group() if found else "unknown"


OURS = _python("penstock", "Penstock", "penstock", "interop.ours_server", "interop.ours_client")
DRAFT = _draft()
PEERS = {
    peer.name: peer
    for peer in (
        _python("py", "rsocket-py", "rsocket", "interop.py.server", "interop.py.client"),
        _javascript("js-0.0.27", "0.0"),
        _javascript("js-1.0", "1.0"),
        _java(),
        _rust(),
    )
}
