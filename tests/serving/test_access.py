"""Credentials from the environment."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from tests.journal.logs import SOURCE, write
from weirpool import Bearer, Metadata, Payload, Simple
from weirpool.errors import LocalError
from weirpool.journal import Journal
from weirpool.serving.access import has_secret, target

from .served import serving

URL = "rsocket+tcp://localhost:1"


def test_there_are_no_credentials_without_variables() -> None:
    assert not target(URL, {}).authenticated and not has_secret()
    assert target("rsocket+tls://localhost:1", {}).cafile is None


def test_a_token_a_file_or_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIRPOOL_JOURNAL_USER", "ada")
    monkeypatch.setenv("WEIRPOOL_JOURNAL_PASSWORD", "p")
    assert shown(URL) == Simple("ada", "p") and has_secret()
    monkeypatch.setenv("WEIRPOOL_JOURNAL_TOKEN_FILE", str(tmp_path / "token"))
    with pytest.raises(LocalError, match=r"cannot read .*token"):
        shown(URL)
    (tmp_path / "token").write_text("t\n")
    assert shown(URL) == Bearer("t")
    monkeypatch.setenv("WEIRPOOL_JOURNAL_TOKEN", "u")
    assert shown(URL) == Bearer("u")
    with pytest.raises(LocalError, match=r"no place for credentials.*WEIRPOOL_JOURNAL_"):
        target("reactive-streams+tcp://localhost:1", {})


def test_the_option_journal_is_the_data_of_the_set_up() -> None:
    found = target("rsocket+ws://localhost:1/path?journal=market", {})
    assert found.url == "rsocket+ws://localhost:1/path"
    assert found._setup() == Payload(b'{"journal":"market"}')


def shown(url: str) -> Simple | Bearer | None:
    return Metadata.decode(target(url, {})._setup().metadata).auth


def test_a_client_certificate_opens_a_collector_that_asks_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "journal", 10)
    authority = trustme.CA()
    files = {name: str(tmp_path / name) for name in ("ca", "server", "client")}
    authority.cert_pem.write_to_path(files["ca"])
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(files["server"])
    authority.issue_cert("worker").private_key_and_cert_chain_pem.write_to_path(files["client"])
    with serving(tmp_path / "journal", f"rsocket+tls://localhost:0?cert={files['server']}&ca={files['ca']}") as served:
        url = served.url.partition("?")[0]
        monkeypatch.setenv("WEIRPOOL_JOURNAL_CA", files["ca"])
        monkeypatch.setenv("WEIRPOOL_JOURNAL_CERT", files["client"])
        assert Journal(url).reader(SOURCE).end == 10
        monkeypatch.setenv("WEIRPOOL_JOURNAL_CERT", str(tmp_path / "absent"))
        with pytest.raises(LocalError, match="absent"):
            target(url, {}).connect()
