from __future__ import annotations

import pytest

from weirpool.errors import JournalError, LocalError
from weirpool.replica.vault import Vault, new_key


def test_secrets_can_be_opened_with_the_key_only() -> None:
    key = new_key()
    sealed = Vault(key, "edge").seal("flights", b"token")
    assert b"token" not in sealed
    assert Vault(f"{key}\n", "edge").open("flights", sealed) == b"token"
    for vault, source in (
        (Vault(new_key(), "edge"), "flights"),
        (Vault(key, "b"), "flights"),
        (Vault(key, "edge"), "x"),
    ):
        with pytest.raises(JournalError, match="cannot be decrypted"):
            vault.open(source, sealed)


def test_the_same_secret_looks_different_each_time() -> None:
    vault = Vault(new_key(), "edge")
    assert vault.seal("flights", b"token") != vault.seal("flights", b"token")


@pytest.mark.parametrize("sealed", [b"", b"\x01", b"\x01" + bytes(8), b"\x02" + bytes(40), b"\x01" + bytes(40)])
def test_junk_is_refused(sealed: bytes) -> None:
    with pytest.raises(JournalError, match="secret of source 'flights'"):
        Vault(new_key(), "edge").open("flights", sealed)


@pytest.mark.parametrize("key", ["", "c2hvcnQ=", "not base64!", "é" * 44])
def test_keys_are_checked_and_not_shown(key: str) -> None:
    with pytest.raises(LocalError, match="32 random bytes") as error:
        Vault(key, "edge")
    assert not key or key not in str(error.value)


def test_a_proof_tells_whether_the_key_is_the_same() -> None:
    key = new_key()
    proof = Vault(key, "edge").proof()
    Vault(key, "edge").check(proof)
    with pytest.raises(JournalError, match="another key"):
        Vault(new_key(), "edge").check(proof)
