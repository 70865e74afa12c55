from __future__ import annotations

import socket
from typing import Any

import obstore
import pytest

from tests.objects.stores import BUCKET, CREDENTIALS, new_uri, numbers
from weirpool.errors import StoreError
from weirpool.objects import open_store, remote


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


def test_a_missing_bucket_is_never_an_empty_store(endpoint: str) -> None:
    store = open_store(f"s3://no-such-bucket/x?endpoint={endpoint}&region=us-east-1")
    calls: list[Any] = [
        lambda: store.get("a"),
        lambda: store.get("a", 1, 2),
        lambda: store.put("a", b""),
        lambda: store.create("a", b""),
        lambda: store.list(""),
        lambda: store.delete(["a"]),
    ]
    for call in calls:
        with pytest.raises(StoreError, match=r"s3://no-such-bucket/x: .*no such bucket"):
            call()


def test_missing_credentials_are_named(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    # Otherwise the machine's role would be looked for in the network.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    store = open_store(new_uri(endpoint))
    with pytest.raises(StoreError, match="cannot be written"):
        store.put("a", b"")


def test_an_unreachable_endpoint_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_WAITS", (0.0, None))
    with socket.socket() as reserved:
        # Nobody listens here.
        reserved.bind(("127.0.0.1", 0))
        store = open_store(f"s3://{BUCKET}?endpoint=http://127.0.0.1:{reserved.getsockname()[1]}&region=us-east-1")
        for call in (lambda: store.create("a", b""), lambda: store.get("a"), lambda: store.list("")):
            with pytest.raises(StoreError, match=f"s3://{BUCKET}: .*check the network") as caught:
                call()
            assert "\n" not in str(caught.value)


def answers(monkeypatch: pytest.MonkeyPatch, written: bool, *errors: Exception | None) -> None:
    """Make the network fail after these attempts to create; `written` says whether the store had done it."""
    real, left = obstore.put, list(errors)

    def put(*arguments: Any, **options: Any) -> Any:
        error = left.pop(0) if left else None
        if error is None:
            return real(*arguments, **options)
        if written:
            real(*arguments, **options)
        raise error

    monkeypatch.setattr(obstore, "put", put)
    monkeypatch.setattr(remote, "_WAITS", (0.0, 0.0, None))


LOST = obstore.exceptions.GenericError("connection reset")


def test_a_lost_answer_is_not_a_lost_race(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"memory://test-{next(numbers)}")
    answers(monkeypatch, True, LOST)
    assert store.create("a", b"mine")
    assert not store.create("a", b"mine")


def test_a_lost_answer_does_not_win_a_lost_race(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"memory://test-{next(numbers)}")
    store.put("a", b"theirs")
    answers(monkeypatch, False, LOST)
    assert not store.create("a", b"mine")


def test_a_request_that_never_arrived_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"memory://test-{next(numbers)}")
    answers(monkeypatch, False, LOST, LOST)
    assert store.create("a", b"mine")


def test_a_network_that_stays_down_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"memory://test-{next(numbers)}")
    answers(monkeypatch, False, LOST, LOST, LOST)
    with pytest.raises(StoreError, match="a cannot be created"):
        store.create("a", b"mine")


def test_signed_urls_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(f"memory://test-{next(numbers)}")

    def fail(*arguments: Any, **options: Any) -> Any:
        raise obstore.exceptions.GenericError("GET https://x/y?sig=hidden failed\nmore")

    monkeypatch.setattr(obstore, "get", fail)
    with pytest.raises(StoreError, match="https://x/y failed") as caught:
        store.get("a")
    assert "hidden" not in str(caught.value) and "more" not in str(caught.value)
