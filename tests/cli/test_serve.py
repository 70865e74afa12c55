from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.conftest import INTEROP, SECONDS, Weirpool, assert_one_line, command, serving
from weirpool.aio.service import Service
from weirpool.cli.serve import load_service
from weirpool.errors import LocalError
from weirpool.store import SessionFolder

INTEROP_SERVICE = f"{INTEROP}:service"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_after_requests_in_flight(number: signal.Signals, tmp_path: Path) -> None:
    program = tmp_path / "slow.py"
    program.write_text(
        "import asyncio\nfrom weirpool import Payload, Service\nservice = Service()\n"
        "@service.call('slow')\n"
        "async def slow(request: Payload) -> bytes:\n"
        "    print('begun', flush=True)\n"
        "    await asyncio.sleep(0.2)\n"
        "    return b'done'\n"
    )
    with serving(f"{program}:service", "rsocket+tcp://127.0.0.1:0") as (process, urls):
        assert process.stdout is not None
        with subprocess.Popen(command("call", urls[0], "slow"), stdout=subprocess.PIPE) as client:
            assert process.stdout.readline() == "begun\n"
            process.send_signal(number)
            assert client.communicate(timeout=SECONDS)[0] == b"done\n"
        assert process.wait(SECONDS) == 0


def test_every_url_is_served_and_printed_with_its_port(weirpool: Weirpool, tmp_path: Path) -> None:
    places = (f"rsocket+unix://{tmp_path}/socket", "rsocket+tcp://127.0.0.1:0")
    with serving(INTEROP_SERVICE, *places) as (_, urls):
        assert urls[0] == places[0]
        assert not urls[1].endswith(":0")
        assert [weirpool("call", url, "echo", "-d", "hi").out for url in urls] == [b"hi\n", b"hi\n"]


def test_two_servers_do_not_share_a_resume_store(weirpool: Weirpool, tmp_path: Path) -> None:
    folder = SessionFolder(tmp_path)
    result = weirpool("serve", INTEROP_SERVICE, "rsocket+tcp://127.0.0.1:0", "--resume-store", str(tmp_path))
    folder.close()
    assert result.code == 1
    assert_one_line(result)


def test_port_in_use_is_one_line(weirpool: Weirpool, server: str) -> None:
    result = weirpool("serve", INTEROP_SERVICE, server)
    assert result.code == 3
    assert_one_line(result)


def test_imports_are_exempt_from_garbage_collections(weirpool: Weirpool, tmp_path: Path) -> None:
    source = "import gc\nfrom weirpool import Service\nservice = Service()\n"
    handler = "@service.call('tracked')\ndef tracked(request):\n    return b'%d' % len(gc.get_objects())\n"
    path = tmp_path / "tracking.py"
    path.write_text(source + handler)
    with serving(f"{path}:service", "rsocket+tcp://127.0.0.1:0") as (_, urls):
        # Without that it is more than 30,000 objects, and a full collection takes more than 10 ms.
        assert int(weirpool("call", urls[0], "tracked").out) < 5_000


def test_module_is_found_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "served_by_a_test.py").write_text("from weirpool import Service\nmine = Service()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert isinstance(load_service("served_by_a_test:mine"), Service)


def test_file_may_import_modules_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beside_a_served_file.py").write_text("from weirpool import Service\nservice = Service()\n")
    (tmp_path / "served_file.py").write_text("from beside_a_served_file import service\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert isinstance(load_service(f"{tmp_path}/served_file.py:service"), Service)


def test_file_may_have_the_name_of_a_module_that_is_imported(tmp_path: Path) -> None:
    source = "from __future__ import annotations\nimport msgspec\nfrom weirpool import Service\nservice = Service()\n"
    typed = "class Quote(msgspec.Struct):\n    price: Price\nPrice = int\n"
    handler = "@service.call('quote')\ndef quote(request: Quote) -> Quote:\n    return request\n"
    path = tmp_path / "queue.py"
    path.write_text(source + typed + handler)
    found = load_service(f"{path}:service")
    assert isinstance(found, Service)
    assert "Price" not in vars(sys.modules["queue"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "MODULE:NAME"),
        ("no_such_module:service", "no_such_module"),
        ("missing.py:service", "no file 'missing.py'"),
        (f"{INTEROP}:servise", "has no .servise.; its services are: service"),
        (f"{INTEROP}:echo", "has .echo., but as a function"),
        ("broken.py:service", r"ZeroDivisionError.*broken\.py, line 2"),
        ("torn.py:service", "SyntaxError"),
    ],
)
def test_invalid_service_is_an_error(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.py").write_text("\n1 / 0\n")
    (tmp_path / "torn.py").write_text("def\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(LocalError, match=message):
        load_service(name)


def test_wrong_name_is_exit_code_2(weirpool: Weirpool) -> None:
    result = weirpool("serve", "nothing", "rsocket+tcp://127.0.0.1:0")
    assert result.code == 2
    assert_one_line(result)


def test_metrics_are_scraped_over_http(weirpool: Weirpool) -> None:
    arguments = ("serve", INTEROP_SERVICE, "rsocket+tcp://127.0.0.1:0", "--metrics", "0")
    with subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("listening on ").strip()
            place = process.stdout.readline().removeprefix("metrics on ").strip()
            assert weirpool("call", url, "echo", "-d", "hi").out == b"hi\n"
            with urllib.request.urlopen(place, timeout=SECONDS) as answer:
                text = answer.read().decode()
            assert 'weirpool_streams_opened_total{initiator="remote",kind="call"} 1.0' in text
            process.send_signal(signal.SIGTERM)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("place", ["nowhere", "127.0.0.1", ":", "70000"])
def test_wrong_place_for_metrics_is_wrong_use(weirpool: Weirpool, place: str) -> None:
    result = weirpool("serve", INTEROP_SERVICE, "rsocket+tcp://127.0.0.1:0", "--metrics", place)
    assert result.code == 2
    assert_one_line(result)


def test_reactive_streams_is_served_to_the_other_verbs(weirpool: Weirpool) -> None:
    with serving(INTEROP_SERVICE, "reactive-streams+tcp://127.0.0.1:0") as (_, urls):
        assert weirpool("call", urls[0], "echo", "-d", "hello").out == b"hello\n"
        assert len(weirpool("stream", urls[0], "count", "-d", "5").lines) == 5
        failed = weirpool("call", urls[0], "fail")
        assert (failed.code, failed.err) == (1, "weirpool: [0x301] boom\n")
        assert "does not support fire requests" in weirpool("fire", urls[0], "log", "-d", "x").err
