from __future__ import annotations

import io
import os
from collections.abc import Iterator

import pytest
from pyspark.util import handle_worker_exception

from weirpool import LocalError
from weirpool.spark.shown import HIDE, WORKER, plain_errors


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run as a worker of PySpark does."""
    monkeypatch.setenv(f"{WORKER}PORT", "1")
    # Else nothing would be put back.
    monkeypatch.setenv(HIDE, "")
    monkeypatch.delenv(HIDE)
    yield


@plain_errors()
def fail(error: Exception) -> None:
    raise error


def shown(error: Exception) -> str:
    """Return what PySpark sends to the JVM."""
    sent = io.BytesIO()
    try:
        fail(error)
    except Exception as caught:
        handle_worker_exception(caught, sent)
    return sent.getvalue()[8:].decode()


@pytest.mark.usefixtures("worker")
def test_our_errors_are_one_line() -> None:
    assert shown(LocalError("do this")) == "weirpool.errors.LocalError: do this\n"


@pytest.mark.usefixtures("worker")
def test_errors_of_others_keep_their_traceback() -> None:
    text = shown(ValueError("a defect"))
    assert text.startswith("Traceback") and text.endswith("ValueError: a defect\n")


def test_nothing_changes_outside_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(WORKER) or name == HIDE]:
        monkeypatch.delenv(name)
    with pytest.raises(LocalError):
        fail(LocalError("do this"))
    assert HIDE not in os.environ


@pytest.mark.usefixtures("worker")
def test_who_wants_tracebacks_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HIDE, "")
    assert shown(LocalError("do this")).startswith("Traceback")
