"""A PostgreSQL server on a Unix socket, for tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from tests.missing import find, need

__all__ = ["postgres"]

READY = "database system is ready to accept connections"


@contextmanager
def postgres() -> Iterator[str]:
    """Run a server while the block runs; yields its URL for SQLAlchemy."""
    need("initdb", "postgres")
    # It refuses to run as root.
    user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        if user:
            shutil.chown(folder, **user)
        data = f"{folder}/data"
        create = [find("initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-N"]
        subprocess.run(create, check=True, stdout=subprocess.DEVNULL, cwd=folder, **user)  # type: ignore[call-overload]
        serve = [find("postgres"), "-D", data, "-k", folder, "-c", "listen_addresses=", "-F"]
        server = subprocess.Popen(serve, stderr=subprocess.PIPE, text=True, cwd=folder, **user)  # type: ignore[call-overload]
        try:
            assert server.stderr is not None
            assert any(READY in line for line in server.stderr)
            yield f"postgresql+pg8000://postgres@/postgres?unix_sock={folder}/.s.PGSQL.5432"
        finally:
            # A fast shutdown: clients are not waited for.
            server.send_signal(signal.SIGINT)
            server.communicate(timeout=20)
