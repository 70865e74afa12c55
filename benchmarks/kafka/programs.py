"""The Java programs: Kafka's broker, its producer, and Spark with its Kafka source, built by Maven."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from interop.peers import MAVEN, PeerMissing, is_newer, run_installer

from weirpool.spark.java import MIN_VERSION, find_java

__all__ = ["Programs", "built"]

FOLDER = Path(__file__).parent / "java"
TARGET = FOLDER / "target"
OPENED = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "jdk.internal.ref",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
"""Packages of java.base that Spark needs, as its own launcher opens them."""
SPARK = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--add-modules=jdk.incubator.vector",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Xmx2g",
)
KAFKA = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")
"""As Kafka's own scripts start it."""


@dataclass(frozen=True)
class Programs:
    """The built programs.

    Attributes:
        java: The Java runtime.
        jars: The folder of Kafka, Spark and what they need.

    """

    java: Path
    jars: Path = TARGET / "dependency"

    def command(self, main: str, options: tuple[str, ...], scratch: Path) -> tuple[str, ...]:
        """Return the command that runs a class; it keeps temporary files in `scratch`."""
        path = os.pathsep.join([str(TARGET / "classes"), str(self.jars / "*")])
        return (str(self.java), *options, f"-Djava.io.tmpdir={scratch}", "-cp", path, main)

    def version(self, jar: str) -> str:
        """Return the version of a jar, named without it."""
        return next(self.jars.glob(f"{jar}-[0-9]*.jar")).stem.removeprefix(f"{jar}-")


def built() -> Programs:
    """Build the programs if their sources have changed, and return them.

    Raises:
        PeerMissing: Java or Maven is not installed, or Maven failed.

    """
    java = find_java()
    if java is None:
        raise PeerMissing(f"Java {MIN_VERSION} or newer is not installed")
    sources = [FOLDER / "pom.xml", *sorted(FOLDER.glob("src/**/*.*"))]
    if not is_newer(TARGET / "classes" / "benchmarks" / "Reader.class", sources):
        run_installer(MAVEN, FOLDER)
    return Programs(java)
