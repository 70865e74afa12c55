from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.fs
import pytest

from tests.objects.bucket import Bucket
from tests.objects.stores import CREDENTIALS
from weirpool.errors import StoreError
from weirpool.objects import open_store, remote
from weirpool.objects.folder import FolderStore
from weirpool.objects.foreign import ForeignStore
from weirpool.objects.ports import Data, Store
from weirpool.objects.probe import ConditionIgnored, probe, probe_once


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote, "_WAITS", (0.0, 0.0, None))
    monkeypatch.setattr(remote, "_RETRIES", {"max_retries": 0})


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with Bucket().served() as served:
        yield served


def test_a_store_that_holds_the_condition_passes(store: Store) -> None:
    for _ in range(2):
        probe(store)
    assert store.list("") == []


def test_a_bucket_that_ignores_the_condition_is_refused(bucket: Bucket) -> None:
    probe(open_store(bucket.uri))
    bucket.conditional = False
    with pytest.raises(ConditionIgnored, match=r"s3://b/g: .*If-None-Match .*two owners"):
        probe(open_store(bucket.uri))
    assert bucket.objects == {}
    assert bucket.requests.count("DELETE") == 2


def test_an_object_that_cannot_be_deleted_is_named(bucket: Bucket, caplog: pytest.LogCaptureFixture) -> None:
    bucket.fail = lambda method, before, done: 403 if method == "DELETE" else None
    probe(open_store(bucket.uri))
    (name,) = bucket.objects
    assert name.removeprefix("g/") in caplog.text and "remove the object" in caplog.text


def test_the_header_is_that_of_the_store() -> None:
    class Google(FolderStore):
        uri = "gs://b?x=y"

        def create(self, name: str, data: Data) -> bool:
            self.put(name, data)
            return True

    with pytest.raises(ConditionIgnored, match=r"^gs://b: .*x-goog-if-generation-match"):
        probe(Google("/nowhere"))


@pytest.mark.parametrize("executed", [False, True])
@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("number", [0, 1])
def test_a_lost_answer_changes_no_result(bucket: Bucket, number: int, conditional: bool, executed: bool) -> None:
    bucket.conditional = conditional
    bucket.fail = lambda method, before, done: 503 if (method, before, done) == ("PUT", number, executed) else None
    if conditional:
        probe(open_store(bucket.uri))
    else:
        with pytest.raises(ConditionIgnored):
            probe(open_store(bucket.uri))
    assert bucket.objects == {}


@pytest.mark.parametrize("executed", [False, True])
@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("number", [0, 1])
def test_an_unclear_answer_never_passes(bucket: Bucket, number: int, conditional: bool, executed: bool) -> None:
    bucket.conditional = conditional
    bucket.fail = lambda method, before, done: (
        503 if method == "PUT" and before >= number and done == executed else None
    )
    with pytest.raises(StoreError) as caught:
        probe(open_store(bucket.uri))
    assert not isinstance(caught.value, ConditionIgnored)
    assert bucket.objects == {}


def test_a_store_that_overwrites_and_denies_it_is_refused(tmp_path: Path) -> None:
    class Liar(FolderStore):
        def create(self, name: str, data: Data) -> bool:
            exists = self.get(name) is not None
            self.put(name, data)
            return not exists

    with pytest.raises(ConditionIgnored):
        probe(Liar(tmp_path))


@pytest.mark.parametrize("found", [None, b"other"])
def test_a_store_that_returns_something_else_is_asked_again(tmp_path: Path, found: bytes | None) -> None:
    class Strange(FolderStore):
        def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
            return found

    with pytest.raises(StoreError, match="try again"):
        probe(Strange(tmp_path))


def test_a_store_without_conditions_is_refused_without_a_request() -> None:
    with pytest.raises(ConditionIgnored, match=r"x://y: .*no conditional writes"):
        probe(ForeignStore("x://y", pyarrow.fs.LocalFileSystem(), "/nowhere"))


def test_a_process_asks_a_store_once(bucket: Bucket) -> None:
    for _ in range(3):
        probe_once(open_store(bucket.uri))
    assert bucket.requests.count("PUT") == 2


def test_a_refusal_is_remembered_and_an_unclear_answer_is_not(bucket: Bucket) -> None:
    bucket.conditional = False
    bucket.fail = lambda method, before, done: 503 if before < 3 and method == "PUT" and not done else None
    with pytest.raises(StoreError, match="check the network"):
        probe_once(open_store(bucket.uri))
    for _ in range(3):
        with pytest.raises(ConditionIgnored):
            probe_once(open_store(bucket.uri))
    assert bucket.requests.count("PUT") == 5
    assert bucket.objects == {}
