from __future__ import annotations

import json
import os
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, append, items, write
from weirpool import JournalCorrupt, JournalMismatch
from weirpool.journal import JournalWriter, Request
from weirpool.journal.identity import MAX_IDENTITY_BYTES, create, decode, load
from weirpool.journal.layout import IDENTITY, log_folder
from weirpool.journal.storage import LogFolder

REQUEST = Request("flights", b"to: ZRH", b"secret metadata", "rsocket+tcp://me:word@host:7878/feed?token=hush")


def test_a_log_is_given_its_identity_once(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, request=REQUEST) as writer:
        name = writer.uuid
        append(writer, 3)
    folder = log_folder(tmp_path, SOURCE)
    written = (folder / IDENTITY).read_bytes()
    identity = load(folder)
    assert identity is not None and identity == LogFolder.of(tmp_path, SOURCE).identity()
    assert identity.uuid == name == str(uuid.UUID(name))
    assert datetime.now(UTC) - identity.created < timedelta(minutes=5)
    with JournalWriter.open(tmp_path, SOURCE, request=REQUEST) as writer:
        assert writer.uuid == name
    # Who names no request opens any log.
    JournalWriter.open(tmp_path, SOURCE).close()
    assert (folder / IDENTITY).read_bytes() == written


def test_nothing_secret_is_in_the_identity(tmp_path: Path) -> None:
    create(tmp_path, REQUEST)
    written = (tmp_path / IDENTITY).read_bytes()
    assert not any(secret in written for secret in (b"ZRH", b"secret", b"word", b"hush", b"me:"))
    fields = json.loads(written)
    assert (fields["weirpool"], fields["request"]["route"]) == (2, "flights")
    assert fields["request"]["url"] == "rsocket+tcp://host:7878/feed"


def test_another_log_has_another_identity_and_other_digests(tmp_path: Path) -> None:
    first, second = (create(tmp_path, REQUEST) for _ in range(2))
    assert first.request is not None and second.request is not None
    assert first.uuid != second.uuid and first.request.data != second.request.data


@pytest.mark.parametrize(
    ("request_", "others"),
    [
        (Request("trains", b"to: ZRH", b"secret metadata"), "route 'flights'"),
        (Request("flights", b"to: GVA", b"secret metadata"), "different data"),
        (Request("flights", b"to: ZRH", b""), "different metadata"),
        (Request("flights", b"to: ZRH"), "different metadata"),
        (Request("trains"), "route 'flights' and different data and different metadata"),
    ],
)
def test_another_request_is_refused(tmp_path: Path, request_: Request, others: str) -> None:
    # THREATS 99
    JournalWriter.open(tmp_path, SOURCE, request=REQUEST).close()
    before = {path: path.read_bytes() for path in log_folder(tmp_path, SOURCE).iterdir() if path.name != "_lock"}
    with pytest.raises(JournalMismatch, match=f"with {others}, not the .*choose another source name") as caught:
        JournalWriter.open(tmp_path, SOURCE, request=request_)
    assert "\n" not in str(caught.value)
    assert before == {path: path.read_bytes() for path in before}
    # And the lock was given back.
    JournalWriter.open(tmp_path, SOURCE, request=REQUEST).close()


def test_a_publisher_may_move(tmp_path: Path) -> None:
    moved = Request(REQUEST.route, REQUEST.data, REQUEST.metadata, "rsocket+tcp://elsewhere:1")
    with JournalWriter.open(tmp_path, SOURCE, request=REQUEST) as before:
        pass
    with JournalWriter.open(tmp_path, SOURCE, request=moved) as after:
        assert after.uuid == before.uuid


def test_a_log_of_no_request_takes_any(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE) as before:
        pass
    with JournalWriter.open(tmp_path, SOURCE, request=REQUEST) as after:
        assert after.uuid == before.uuid


def test_segments_without_an_identity_are_of_format_1(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    (folder / IDENTITY).unlink()
    with pytest.raises(JournalCorrupt, match=r"format 1 cannot be read.*collect it again in another folder") as caught:
        JournalWriter.open(tmp_path, SOURCE)
    assert "\n" not in str(caught.value)
    assert not (folder / IDENTITY).exists()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    identity = create(tmp_path, None)
    newer = {"weirpool": 3, "uuid": identity.uuid, "created": {"not": "ours to read"}}
    with pytest.raises(JournalCorrupt, match=r"format 3, which a newer version .* reads format 2; update Weirpool"):
        decode(json.dumps(newer).encode(), "name")


WHOLE = {"weirpool": 2, "uuid": str(uuid.UUID(int=7)), "created": "2026-01-02T03:04:05Z", "request": None}


@pytest.mark.parametrize(
    "change",
    [
        {"weirpool": 1},
        {"weirpool": "2"},
        {"uuid": "7"},
        {"uuid": "{" + str(uuid.UUID(int=7)) + "}"},
        {"uuid": None},
        {"created": "2026-01-02T03:04:05"},
        {"created": "soon"},
        {"created": "99999-01-01T00:00:00Z"},
        {"request": {"route": 1}},
        {"request": []},
    ],
)
def test_a_hostile_identity_is_corrupt(change: dict[str, object]) -> None:
    # THREATS 98
    decode(json.dumps(WHOLE).encode(), "name")
    with pytest.raises(JournalCorrupt, match=r"^name: is not the identity of a log \(.*\); restore"):
        decode(json.dumps(WHOLE | change).encode(), "name")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 100,
        b"[]",
        b'{"weirpool":2}',
        b'{"weirpool":2,"x":' + b"[" * 100_000,
        b'{"weirpool":2,"uuid":"\xff"}',
        b'{"weirpool":' + b"9" * 400 + b"}",
        b" " * (MAX_IDENTITY_BYTES + 1),
    ],
)
def test_junk_is_no_identity(tmp_path: Path, data: bytes) -> None:
    # THREATS 98
    folder = write(tmp_path, 3)
    (folder / IDENTITY).write_bytes(data)
    for attempt in (
        lambda: JournalWriter.open(tmp_path, SOURCE),
        lambda: LogFolder.of(tmp_path, SOURCE).identity(),
    ):
        with pytest.raises(JournalCorrupt):
            attempt()


def test_a_crash_while_a_log_is_created_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(source: object, target: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "replace", crash)
        JournalWriter.open(tmp_path, SOURCE, request=REQUEST)
    assert LogFolder.of(tmp_path, SOURCE).identity() is None
    with JournalWriter.open(tmp_path, SOURCE, request=Request("trains")) as writer:
        assert writer.append(items(0, 1), "trains") == 1
