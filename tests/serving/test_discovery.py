"""The file by which readers find a journal's collector."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from weirpool import LocalError
from weirpool.serving.discovery import Announcements, Found, address_of, discovered

URL = "rsocket+tls://collector.example.org:7879"
FILE = "_served.json"


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOKEN", "TOKEN_FILE", "USER", "HOSTS"):
        monkeypatch.delenv(f"WEIRPOOL_JOURNAL_{name}", raising=False)


def test_a_collector_is_found_while_it_serves(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    announcements = Announcements(URL)
    assert discovered(str(one)) is None
    announcements.update({"a": str(one), "b": str(other)})
    assert discovered(str(one)) == Found(f"{URL}?journal=a", socket.gethostname())
    assert discovered(str(other)) == Found(f"{URL}?journal=b", socket.gethostname())
    # For the owner of the journal alone.
    assert (one / FILE).stat().st_mode & 0o777 == 0o600
    announcements.update({"c": str(one)})
    assert discovered(str(one)) == Found(f"{URL}?journal=c", socket.gethostname())
    assert discovered(str(other)) is None
    announcements.close()
    assert [*one.iterdir(), *other.iterdir()] == []


def test_the_file_of_a_collector_that_was_killed_is_stale(tmp_path: Path) -> None:
    program = (
        "import sys; from weirpool.serving.discovery import Announcements; "
        f"Announcements({URL!r}).update({{'a': sys.argv[1]}}); print(flush=True); sys.stdin.read()"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        assert discovered(str(tmp_path)) is not None
        # Another collector waits for its turn, and does not replace it.
        second = Announcements("rsocket+tls://second.example.org:1")
        second.update({"a": str(tmp_path)})
        found = discovered(str(tmp_path))
        assert found is not None and found.url.startswith(URL)
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / FILE).exists() and discovered(str(tmp_path)) is None
    second.update({"a": str(tmp_path)})
    found = discovered(str(tmp_path))
    assert found is not None and "second" in found.url
    second.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[",
        b"{}",
        json.dumps({"v": 2, "url": URL, "host": "h"}).encode(),
        json.dumps({"v": 1, "url": "file:///etc/passwd", "host": "h"}).encode(),
        json.dumps({"v": 1, "url": "rsocket+tls://user:geheim@h:1", "host": "h"}).encode(),
        json.dumps({"v": 1, "url": f"{URL}?ca=/tmp/mine.pem", "host": "h"}).encode(),
        b" " * 5_000,
    ],
)
def test_junk_is_ignored(tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    announcements = Announcements(URL)
    announcements.update({"a": str(tmp_path)})
    (tmp_path / FILE).write_bytes(content)
    assert discovered(str(tmp_path)) is None
    assert discovered(str(tmp_path)) is None
    assert len(caplog.records) == 1 and "is ignored" in caplog.text and "geheim" not in caplog.text
    announcements.close()


def test_a_file_that_others_can_write_or_have_linked_is_ignored(tmp_path: Path) -> None:
    announcements = Announcements(URL)
    announcements.update({"a": str(tmp_path)})
    (tmp_path / FILE).chmod(0o620)
    assert discovered(str(tmp_path)) is None
    (tmp_path / FILE).chmod(0o600)
    assert discovered(str(tmp_path)) is not None
    (tmp_path / FILE).rename(tmp_path / "real")
    (tmp_path / FILE).symlink_to(tmp_path / "real")
    assert discovered(str(tmp_path)) is None
    (tmp_path / FILE).unlink()
    os.mkfifo(tmp_path / FILE)
    assert discovered(str(tmp_path)) is None
    announcements.close()


def test_a_disk_that_fails_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    announcements = Announcements(URL)
    for _ in range(2):
        announcements.update({"a": str(tmp_path / "file")})
    assert len(caplog.records) == 1 and "readers cannot find this collector" in caplog.text
    announcements.close()


def test_credentials_go_only_to_hosts_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Found(f"{URL}?journal=a", "collector")
    assert found.checked() == found.url
    monkeypatch.setenv("WEIRPOOL_JOURNAL_TOKEN", "geheim")
    with pytest.raises(LocalError, match=r"set WEIRPOOL_JOURNAL_HOSTS=collector\.example\.org") as caught:
        found.checked()
    assert "geheim" not in str(caught.value)
    monkeypatch.setenv("WEIRPOOL_JOURNAL_HOSTS", "evil.example.org")
    with pytest.raises(LocalError, match="WEIRPOOL_JOURNAL_HOSTS"):
        found.checked()
    monkeypatch.setenv("WEIRPOOL_JOURNAL_HOSTS", "one, Collector.example.org")
    assert found.checked() == found.url


def test_an_address_of_another_machine_alone_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "rsocket+tcp://127.0.0.1:7879?journal=a"
    with pytest.raises(LocalError, match="of the machine elsewhere only"):
        Found(url, "elsewhere").checked()
    monkeypatch.setenv("WEIRPOOL_JOURNAL_TOKEN", "t")
    assert Found(url, socket.gethostname()).checked() == url


def test_addresses_name_no_files() -> None:
    here = socket.gethostname()
    assert address_of("rsocket+tls://:7879?cert=c&key=k&ca=a") == f"rsocket+tls://{here}:7879"
    assert address_of("rsocket+tcp://[::]:1") == f"rsocket+tcp://{here}:1"
    assert address_of("rsocket+tcp://10.0.0.1:1") == "rsocket+tcp://10.0.0.1:1"
    assert address_of("rsocket+unix:///tmp/s?mode=600") == "rsocket+unix:///tmp/s"
    assert address_of("rsocket+tls://:1", URL) == URL
    for wrong in ("rsocket+tls://:1", "rsocket+tls://h:0", f"{URL}?cert=c"):
        with pytest.raises(LocalError, match="must have a host, a port and no options"):
            address_of("rsocket+tls://:1", wrong)
