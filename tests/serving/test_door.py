"""Who may come in."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock import Bearer, LocalError, Metadata, Payload, SetupRejected, Simple
from penstock.serving.door import environment_token, journal_server
from penstock.serving.journals import ServedJournals
from tests.journal.logs import write


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
        penstock.connect(url, setup=setup) as peer,
    ):
        if admitted:
            assert b'"s"' in (await peer.call("penstock.journal.list")).data
        else:
            with pytest.raises(SetupRejected, match="no valid token"):
                await peer.call("penstock.journal.list")


async def test_without_a_token_everybody_on_this_machine_may_read(tmp_path: Path) -> None:
    write(tmp_path, 10)
    url = f"rsocket+memory://{tmp_path.name}"
    async with journal_server(ServedJournals({"j": str(tmp_path)}), url), penstock.connect(url) as peer:
        assert (await peer.call("penstock.journal.list")).data


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
        penstock.connect(url, setup=setup) as peer,
    ):
        with pytest.raises(SetupRejected, match="no valid token"):
            await peer.call("penstock.journal.list")


def test_a_token_of_the_environment_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_SERVE_TOKEN", raising=False)
    assert environment_token() is None
    monkeypatch.setenv("PENSTOCK_SERVE_TOKEN", "a")
    token = environment_token()
    assert token is not None and token() == "a"
    monkeypatch.setenv("PENSTOCK_SERVE_TOKEN", "b")
    assert token() == "b"
