from __future__ import annotations

import pytest

from tests.river.peers import RANDOM, Duo
from weirpool.errors import LocalError
from weirpool.river.connect import new_client, restored_client
from weirpool.river.identity import Identity
from weirpool.settings import Settings


def test_client_needs_randomness_and_valid_metadata() -> None:
    with pytest.raises(LocalError, match="random"):
        new_client(Settings(), Identity(), b"", b"x")
    with pytest.raises(LocalError, match="json"):
        new_client(Settings(), Identity(), b"{", RANDOM)
    made = [new_client(Settings(), Identity(), b"", bytes([each]) * 16) for each in (1, 2)]
    assert made[0].session_id != made[1].session_id and made[0].us != made[1].us


def test_restored_client_has_the_ids_of_its_checkpoint() -> None:
    duo = Duo()
    checkpoint = duo.client.checkpoint(0, 0)
    assert checkpoint is not None
    again = restored_client(Settings(), Identity(), b"", RANDOM, checkpoint, duo.client.secret)
    assert (again.us, again.peer, again.session_id) == (duo.client.us, duo.client.peer, duo.client.session_id)
    assert again._new_id() != duo.client._new_id()
    with pytest.raises(LocalError, match="secret"):
        restored_client(Settings(), Identity(), b"", RANDOM, checkpoint, b"\xff")
