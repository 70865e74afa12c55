from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from grp import getgrgid
from pathlib import Path

import pytest

import weirpool
from tests.transports.recording import connected, listening
from weirpool import ConnectError, Service, UrlError, transports
from weirpool.settings import DEFAULT_SETTINGS
from weirpool.transports import Refused
from weirpool.transports.sockets import FileOfSocket, listening_sockets, user_of
from weirpool.urls import parse_url


@pytest.fixture
def bound() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


def url_of(*descriptors: object, transport: str = "tcp") -> str:
    place = "/tmp/unused" if transport == "unix" else "127.0.0.1:0"
    return f"rsocket+{transport}://{place}?fd={','.join(map(str, descriptors))}"


async def test_inherited_socket_accepts_links(bound: socket.socket) -> None:
    async with listening(url_of(bound.fileno())) as place:
        assert place.port == bound.getsockname()[1]
        client = await connected(f"rsocket+tcp://127.0.0.1:{place.port}")
        server = await place.linked()
        client.link.write(b"there")
        await server.has(b"there")
        client.link.abort()
        await server.lost()


async def test_several_sockets_are_inherited(bound: socket.socket) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        async with listening(url_of(bound.fileno(), other.fileno())) as place:
            for each in (bound, other):
                client = await connected(f"rsocket+tcp://127.0.0.1:{each.getsockname()[1]}")
                server = await place.linked()
                client.link.abort()
                await server.lost()
                assert server.told[0] == "made"


async def test_descriptor_stays_open_and_keeps_its_queue(bound: socket.socket) -> None:
    async with listening(url_of(bound.fileno())):
        pass
    # The next listener finds what arrives between the two.
    with socket.create_connection(bound.getsockname()) as client:
        async with listening(url_of(bound.fileno())) as place:
            server = await place.linked()
            client.sendall(b"early")
            await server.has(b"early")
            server.link.abort()
            await server.lost()


async def test_wrong_descriptors_are_refused(bound: socket.socket, tmp_path: Path) -> None:
    with socket.create_connection(bound.getsockname()) as link, (tmp_path / "file").open("w") as file:
        number = bound.fileno()
        cases = {
            url_of("x"): "descriptor 'x' is not a number; write .fd=3, or .fd=3,4",
            url_of(): "descriptor '' is not a number",
            url_of("9" * 20): "is not a number",
            url_of(number, ""): "descriptor '' is not a number",
            url_of(file.fileno()): "is not an open socket .*; check that it is passed to this process",
            url_of(987_654): "descriptor 987654 is not an open socket",
            url_of(link.fileno()): "is not a listening socket for this transport",
            url_of(number, transport="unix"): "is not a listening socket for this transport",
        }
        before = len(os.listdir("/proc/self/fd"))
        for url, text in cases.items():
            with pytest.raises(UrlError, match=text):
                await listening_sockets(parse_url(url))
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("url", ["rsocket+quic://127.0.0.1:1?fd=3&cert=c", "rsocket+memory://x?fd=3"])
async def test_transports_without_sockets_to_inherit_refuse_the_option(url: str) -> None:
    with pytest.raises(UrlError, match="unknown option 'fd'"):
        await transports.listen(parse_url(url), lambda *_: Refused(""), DEFAULT_SETTINGS)


async def test_clients_have_no_such_option(bound: socket.socket) -> None:
    with pytest.raises(UrlError, match="unknown option 'fd'"):
        await connected(url_of(bound.fileno()))


@pytest.mark.parametrize("scheme", ["tcp", "unix", "ws", "h2c"])
async def test_links_that_wait_are_left_to_the_successor(scheme: str, tmp_path: Path) -> None:
    place = f"/{tmp_path}/s" if scheme == "unix" else "127.0.0.1:0"
    server = await weirpool.serve(Service(), f"rsocket+{scheme}://{place}")
    urls, descriptors = server.hand_over()
    assert urls == [f"{server.urls[0]}?fd={descriptors[0]}"]
    # As a process does that inherits them.
    kept = socket.socket(fileno=os.dup(descriptors[0]))
    with kept:
        with socket.socket(kept.family) as client:
            client.connect(kept.getsockname())
            await server.close()
            service = Service()
            service.call("name")(lambda request: b"new")
            async with weirpool.serve(service, urls[0].replace(f"fd={descriptors[0]}", f"fd={kept.fileno()}")) as new:
                async with weirpool.connect(server_url(new.urls[0])) as peer:
                    assert (await peer.call("name")).data == b"new"


def server_url(url: str) -> str:
    return url.partition("?")[0]


async def test_transports_without_sockets_hand_nothing_over() -> None:
    async with weirpool.serve(Service(), "rsocket+memory://x") as server:
        assert server.hand_over() == (["rsocket+memory://x"], [])


async def test_addresses_in_use_stay_an_error(bound: socket.socket) -> None:
    with pytest.raises(ConnectError, match="the address is in use"):
        async with listening(f"rsocket+tcp://127.0.0.1:{bound.getsockname()[1]}"):
            pass


def test_file_of_another_socket_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.touch()
    mine = FileOfSocket(str(path))
    os.rename(path, tmp_path / "old")
    path.touch()
    mine.remove()
    assert path.exists()
    os.rename(tmp_path / "old", path)
    mine.remove()
    mine.remove()
    assert not path.exists()


def test_listener_without_a_file_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").touch()
    FileOfSocket("").remove()
    assert os.listdir(tmp_path) == ["other"]


# The files of Unix sockets, and their peers.


@pytest.mark.parametrize(("mode", "expected"), [("600", 0o600), ("0660", 0o660), ("777", 0o777)])
async def test_file_has_the_mode_of_the_url(mode: str, expected: int, tmp_path: Path) -> None:
    async with listening(f"rsocket+unix://{tmp_path}/s?mode={mode}"):
        assert os.stat(tmp_path / "s").st_mode & 0o7777 == expected


async def test_file_has_the_group_of_the_url(tmp_path: Path) -> None:
    # Only root may choose a group that is not its own.
    group = 1 if os.getuid() == 0 else os.getgid()
    for name in (str(group), getgrgid(group).gr_name):
        async with listening(f"rsocket+unix://{tmp_path}/s?group={name}&mode=660"):
            assert os.stat(tmp_path / "s").st_gid == group


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("mode=rw", "mode 'rw' is not three octal digits"),
        ("mode=1777", "mode '1777' is not three octal digits"),
        ("mode=", "mode '' is not three octal digits"),
        ("group=no-such-group", "there is no group 'no-such-group' on this machine"),
        ("owner=me", "unknown option 'owner'; known are fd, group, mode"),
    ],
)
async def test_wrong_options_of_a_file_are_refused(options: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UrlError, match=message):
        async with listening(f"rsocket+unix://{tmp_path}/s?{options}"):
            pass
    assert not (tmp_path / "s").exists()


async def test_options_of_a_file_are_for_unix_sockets() -> None:
    with pytest.raises(UrlError, match="unknown option 'mode'; known are fd"):
        async with listening("rsocket+tcp://127.0.0.1:0?mode=660"):
            pass


async def test_file_whose_group_cannot_be_set_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    with pytest.raises(ConnectError, match="Operation not permitted"):
        async with listening(f"rsocket+unix://{tmp_path}/s?group=0"):
            pass
    assert not (tmp_path / "s").exists()


async def test_abstract_socket_needs_no_file(tmp_path: Path) -> None:
    url = f"rsocket+unix://%00weirpool{tmp_path}"
    async with listening(url) as place:
        client = await connected(url)
        server = await place.linked()
        client.link.write(b"there")
        await server.has(b"there")
        client.link.abort()
        await server.lost()
    with pytest.raises(ConnectError, match="connection refused"):
        await connected(url)
    with pytest.raises(UrlError, match="an abstract socket has no file, and no mode or group"):
        async with listening(f"{url}?mode=600"):
            pass


async def test_address_of_a_unix_peer_is_its_user(tmp_path: Path) -> None:
    # THREATS 95: limits tell local users apart.
    async with listening(f"rsocket+unix://{tmp_path}/s") as place:
        client = await connected(f"rsocket+unix://{tmp_path}/s")
        server = await place.linked()
        assert place.addresses == [f"uid {os.getuid()}"]
        client.link.abort()
        await server.lost()


def test_peers_have_no_address_where_the_system_tells_no_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SO_PEERCRED")
    one, other = socket.socketpair()
    with one, other:
        assert user_of(one) == ""
