from __future__ import annotations

import socket
from pathlib import Path

import pytest

from weirpool.feeds.notify import notify


@pytest.mark.parametrize("abstract", [False, True])
def test_service_manager_is_told(abstract: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{tmp_path.name}/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0{name}" if abstract else str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}" if abstract else str(tmp_path / "notify"))
        notify("READY=1")
        assert receiver.recv(100) == b"READY=1"
        notify("RELOADING=1")
        assert receiver.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC=")


def test_nothing_happens_without_a_service_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    notify("READY=1")
    assert list(tmp_path.iterdir()) == []
