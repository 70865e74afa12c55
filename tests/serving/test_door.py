"""Who may come in."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import Bearer, LocalError, Metadata, Payload, Rejected, SetupRejected, Simple
from penstock.serving.door import check_exposure, environment_token, journal_server
from penstock.serving.journals import ServedJournals
from tests.journal.logs import write


@pytest.mark.parametrize(
    "url",
    ["rsocket+tcp://127.0.0.1:1", "rsocket+tcp://[::1]:1", "rsocket+ws://localhost:1", "rsocket+unix:///tmp/s"],
)
def test_this_machine_needs_no_credentials(url: str, caplog: pytest.LogCaptureFixture) -> None:
    check_exposure([url], None)
    assert not caplog.records


@pytest.mark.parametrize(
    "url", ["rsocket+tcp://:1", "rsocket+tcp://0.0.0.0:1", "rsocket+tls://collector:1?cert=c", "rsocket+tcp://:1?ca=a"]
)
def test_other_machines_do(url: str) -> None:
    with pytest.raises(LocalError, match=r"could read and trim this journal; set the variable PENSTOCK_SERVE_TOKEN"):
        check_exposure(["rsocket+tcp://127.0.0.1:1", url], None)
    check_exposure(["rsocket+tls://:1?cert=c&ca=a"], None)


def test_what_is_not_encrypted_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check_exposure(["rsocket+tls://:1?cert=c"], "t")
        assert not caplog.records
        check_exposure(["rsocket+tcp://:1"], "t")
    assert "not encrypted" in caplog.text


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
            with pytest.raises(SetupRejected, match="missing or wrong"):
                await peer.call("penstock.journal.list")


@pytest.mark.parametrize(
    ("shown", "admitted", "may"), [("reader", True, False), ("0perator", True, True), ("other", False, False)]
)
async def test_operators_show_a_token_of_their_own(tmp_path: Path, shown: str, admitted: bool, may: bool) -> None:
    write(tmp_path, 10)
    url = f"rsocket+memory://{tmp_path.name}"
    tokens: dict[str, Any] = {"token": lambda: "reader", "operator": lambda: "0perator"}
    async with (
        journal_server(ServedJournals({"j": str(tmp_path)}), url, **tokens),
        penstock.connect(url, setup=Payload(b"", Metadata(auth=Bearer(shown)).encode())) as peer,
    ):
        request = b'{"source": "s", "cursor": "export", "position": 5}'
        if not admitted:
            with pytest.raises(SetupRejected, match="missing or wrong"):
                await peer.call("penstock.journal.seek", request)
        elif may:
            assert (await peer.call("penstock.journal.seek", request)).data == b"5"
        else:
            with pytest.raises(Rejected, match="seek is not allowed to this client"):
                await peer.call("penstock.journal.seek", request)
            assert (await peer.call("penstock.journal.commit", request)).data == b"5"


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
        with pytest.raises(SetupRejected, match="missing or wrong"):
            await peer.call("penstock.journal.list")


def test_a_token_of_the_environment_is_read_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_SERVE_TOKEN", raising=False)
    assert environment_token() is None
    monkeypatch.setenv("PENSTOCK_SERVE_TOKEN", "a")
    token = environment_token()
    assert token is not None and token() == "a"
    monkeypatch.setenv("PENSTOCK_SERVE_TOKEN", "b")
    assert token() == "b"
