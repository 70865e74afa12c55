"""Stores of each kind, as new ones for each test."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen

from moto.server import ThreadedMotoServer

__all__ = ["BUCKET", "CREDENTIALS", "new_uri", "s3_server"]

BUCKET = "weirpool"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
numbers = itertools.count()


@contextmanager
def s3_server() -> Iterator[str]:
    """Run an emulator of S3 with one bucket, and yield its endpoint."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        _create_bucket(endpoint)
        yield endpoint
    finally:
        server.stop()


def _create_bucket(endpoint: str) -> None:
    with urlopen(Request(f"{endpoint}/{BUCKET}", method="PUT"), timeout=10):
        pass


def new_uri(endpoint: str) -> str:
    """Return the URI of a place in the bucket that nobody has used."""
    return f"s3://{BUCKET}/place-{next(numbers)}?endpoint={endpoint}&region=us-east-1"
