"""Who may come in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weirpool
from tests.journal.logs import write
from weirpool import Bearer, LocalError, Metadata, Payload, Rejected, SetupRejected, Simple
from weirpool.serving.door import environment_token, journal_server
from weirpool.serving.journals import ServedJournals


@pytest.mark.parametrize(
    ("setup", "admitted"),
    [
        (Payload(b"", Metadata(auth=Bearer("s3cret")).encode()), True),
        (Payload(b"", Metadata(auth=Bearer("s3cre")).encode()), False),
        (Payload(b"", Metadata(auth=Simple("a", "s3cret")).encode()), False),
        (Payload(b"", b"\xff\xff\xff"), False),
        (Payload(b"s3cret"), False),
    ],
)
async def test_a_token_is_asked_for(tmp_path: Path, setup: Payload, admitted: bool) -> None:
    write(tmp_path, 10)
    url = f"rsocket+memory://{tmp_path.name}"
    async with (
        journal_server(ServedJournals({"j": str(tmp_path)}), url, token=lambda: "s3cret"),
        weirpool.connect(url, setup=setup) as peer,
    ):
        if admitted:
            assert b'"s"' in (await peer.call("weirpool.journal.list")).data
        else:
            with pytest.raises(SetupRejected, match="missing or wrong"):
                await peer.call("weirpool.journal.list")


@pytest.mark.parametrize(
    ("shown", "admitted", "may"), [("reader", True, False), ("0perator", True, True), ("other", False, False)]
)
async def test_operators_show_a_token_of_their_own(tmp_path: Path, shown: str, admitted: bool, may: bool) -> None:
    write(tmp_path, 10)
    url = f"rsocket+memory://{tmp_path.name}"
    tokens: dict[str, Any] = {"token": lambda: "reader", "operator": lambda: "0perator"}
    async with (
        journal_server(ServedJournals({"j": str(tmp_path)}), url, **tokens),
        weirpool.connect(url, setup=Payload(b"", Metadata(auth=Bearer(shown)).encode())) as peer,
    ):
        request = b'{"source": "s", "cursor": "export", "position": 5}'
        if not admitted:
            with pytest.raises(SetupRejected, match="missing or wrong"):
                await peer.call("weirpool.journal.seek", request)
        elif may:
            assert (await peer.call("weirpool.journal.seek", request)).data == b"5"
        else:
            with pytest.raises(Rejected, match="seek is not allowed to this client"):
                await peer.call("weirpool.journal.seek", request)
            assert (await peer.call("weirpool.journal.commit", request)).data == b"5"


async def test_without_a_token_everybody_on_this_machine_may_read(tmp_path: Path) -> None:
    write(tmp_path, 10)
    url = f"rsocket+memory://{tmp_path.name}"
    async with journal_server(ServedJournals({"j": str(tmp_path)}), url), weirpool.connect(url) as peer:
        assert (await peer.call("weirpool.journal.list")).data


@pytest.mark.parametrize("token", ["", None])
async def test_without_a_token_to_compare_nobody_is_admitted(tmp_path: Path, token: str | None) -> None:
    def current() -> str:
        if token is None:
            raise LocalError("cannot read the token")
        return token

    setup = Payload(b"", Metadata(auth=Bearer("")).encode())
    url = f"rsocket+memory://{tmp_path.name}"
    async with (
        journal_server(ServedJournals({"j": str(tmp_path)}), url, token=current),
        weirpool.connect(url, setup=setup) as peer,
    ):
        with pytest.raises(SetupRejected, match="missing or wrong"):
            await peer.call("weirpool.journal.list")


def test_a_token_of_the_environment_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEIRPOOL_SERVE_TOKEN", raising=False)
    assert environment_token() is None
    monkeypatch.setenv("WEIRPOOL_SERVE_TOKEN", "a")
    token = environment_token()
    assert token is not None and token() == "a"
    monkeypatch.setenv("WEIRPOOL_SERVE_TOKEN", "b")
    assert token() == "b"
