from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme

import weirpool
from tests.feeds.helpers import config, items
from weirpool import Metadata, Service
from weirpool.errors import LocalError
from weirpool.feeds.config import Auth, FeedConfig, Setup, Tls
from weirpool.feeds.request import check, collector
from weirpool.feeds.values import Reference


def seeing(seen: list[weirpool.Request]) -> Service:
    """Return a service that notes requests."""

    async def note(request: weirpool.Request, next: weirpool.Next) -> object:
        seen.append(request)
        return await next(request)

    service = Service(interceptors=[note])

    @service.stream("numbers")
    async def numbers(request: weirpool.Payload) -> AsyncIterator[bytes]:
        yield request.data

    return service


async def collected(feed: FeedConfig, folder: Path) -> weirpool.Request:
    """Collect a feed from a publisher in memory; return the request that it got."""
    seen: list[weirpool.Request] = []
    async with weirpool.serve(seeing(seen), "rsocket+memory://publisher"):
        await collector("feed", feed, folder).run()
    return seen[0]


@pytest.mark.parametrize(
    "auth",
    [Auth(bearer="token"), Auth(bearer=Reference(env="TOKEN")), Auth(file="whole")],
)
async def test_credentials_are_sent_and_not_recorded(
    auth: Auth, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "token")
    (tmp_path / "whole").write_text("bearer:token\n")
    request = await collected(config(tmp_path / "journal", auth=auth, data="data", metadata="own"), tmp_path)
    found = Metadata.decode(request.payload.metadata)
    assert (request.route, request.payload.data, found.auth) == ("numbers", b"data", weirpool.Bearer("token"))
    assert [entry.content for entry in found.entries if entry.mime == "application/octet-stream"] == [b"own"]
    assert items(tmp_path / "journal", "feed") == [b"data"]
    # With other credentials it is the same request: the log is complete.
    again = collector("feed", config(tmp_path / "journal", data="data", metadata="own"), tmp_path)
    await again.run()
    assert again.progress.already


async def test_user_and_password_are_sent(tmp_path: Path) -> None:
    feed = config(tmp_path / "journal", auth=Auth(user="u", password="p:q"))
    request = await collected(feed, tmp_path)
    assert Metadata.decode(request.payload.metadata).auth == weirpool.Simple("u", "p:q")


async def test_tls_with_client_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    for name in ("localhost", "client"):
        authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(str(tmp_path / f"{name}.pem"))
    seen: list[weirpool.Request] = []
    files = f"cert={tmp_path}/localhost.pem&key={tmp_path}/localhost.pem&ca={tmp_path}/ca.pem"
    async with weirpool.serve(seeing(seen), f"rsocket+tls://127.0.0.1:0?{files}") as server:
        url = f"rsocket+tls://localhost:{server.urls[0].partition('?')[0].rpartition(':')[2]}"
        tls = Tls(cafile=str(tmp_path / "ca.pem"), cert=str(tmp_path / "client.pem"))
        await collector("feed", config(tmp_path / "journal", url=url, tls=tls, data="x"), tmp_path).run()
    assert seen[0].connection.certificate is not None
    assert items(tmp_path / "journal", "feed") == [b"x"]


async def in_setup(setup: Setup, folder: Path, **options: object) -> weirpool.Setup:
    """Collect a feed from a publisher that looks at set-ups; return what it saw."""
    seen: list[weirpool.Setup] = []
    url = str(options.setdefault("url", "rsocket+memory://publisher"))
    service = seeing([])
    service.stream("demo.numbers")(lambda request: [b"{}"])
    async with weirpool.serve(service, url, acceptor=seen.append):
        await collector("feed", config(folder / "journal", setup=setup, **options), folder).run()
    return seen[0]


async def test_credentials_of_the_connection_are_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    setup = Setup(data="data", metadata="own", auth=Auth(bearer=Reference(env="TOKEN")))
    payload = (await in_setup(setup, tmp_path)).payload
    found = Metadata.decode(payload.metadata)
    assert (payload.data, found.auth) == (b"data", weirpool.Bearer("secret"))
    assert [entry.content for entry in found.entries if entry.mime == "application/octet-stream"] == [b"own"]
    for path in (tmp_path / "journal" / "source=feed").iterdir():
        assert b"secret" not in path.read_bytes()


@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2", "reactivesocket-0.0"])
async def test_set_up_is_data_and_metadata_in_other_protocols(protocol: str, tmp_path: Path) -> None:
    url = f"{protocol}+memory://publisher"
    payload = (await in_setup(Setup(data="token", metadata="own"), tmp_path, url=url)).payload
    assert (payload.data, payload.metadata) == (b"token", b"own")


async def test_set_up_is_the_handshake_over_river(tmp_path: Path) -> None:
    setup = Setup(data='{"token": "x"}')
    seen = await in_setup(setup, tmp_path, url="river+memory://publisher", route="demo.numbers")
    assert seen.payload.data == b'{"token":"x"}'


async def test_protocol_without_a_set_up_refuses_it(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="has no set-up payload"):
        await in_setup(Setup(data="x"), tmp_path, url="reactive-streams+memory://publisher")


def test_problems_are_found_before_connecting(tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("not a certificate")
    bad = str(tmp_path / "bad.pem")
    for feed, part in (
        (config(tmp_path, auth=Auth(env="NOT_SET_ANYWHERE")), "auth: the environment variable"),
        (config(tmp_path, auth=Auth(file="bad.pem")), "auth: the place has neither"),
        (config(tmp_path, data=Reference(file="nowhere")), "data: cannot read"),
        (config(tmp_path, setup=Setup(data=Reference(file="nowhere"))), r"setup\.data: cannot read"),
        (config(tmp_path, setup=Setup(auth=Auth(file="bad.pem"))), r"setup\.auth: the place has neither"),
        (config(tmp_path, tls=Tls(cafile=bad)), "tls: cannot read certificates from"),
    ):
        check(feed)
        with pytest.raises(LocalError, match=part):
            collector("feed", feed, tmp_path)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"settings": {"resume": True}}, "settings.resume is not a setting that can be given here"),
        ({"settings": {"credit": True}}, "settings.credit is True; it must be a whole number"),
        ({"settings": {"credit": 0}}, "credit"),
        ({"settings": {"extensions": [1]}}, "extensions|settings"),
        ({"settings": {"metadata_mime": "text/plain"}, "auth": Auth(bearer="x")}, "auth: needs composite metadata"),
        ({"url": "river+memory://x", "setup": Setup(auth=Auth(bearer="x"))}, "setup.auth: needs composite metadata"),
        ({"headers": {"A": "b"}}, "headers"),
        ({"url": "river+memory://x", "auth": Auth(bearer="x")}, "auth: needs composite metadata"),
        ({"url": "rsocket+quic://h:1", "tls": Tls(insecure=True)}, "only cafile"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, object], part: str, tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=part):
        check(config(tmp_path, **options))


async def test_river_data_is_written_as_json(tmp_path: Path) -> None:
    seen: list[weirpool.Request] = []
    service = seeing(seen)
    service.stream("demo.numbers")(lambda request: [request.data])
    async with weirpool.serve(service, "river+memory://publisher"):
        feed = config(tmp_path, url="river+memory://publisher", route="demo.numbers", data='{"n": 3}')
        await collector("feed", feed, tmp_path).run()
    assert seen[0].payload.data == b'{"n":3}'
