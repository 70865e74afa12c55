from __future__ import annotations

import asyncio
import logging
import ssl

import pytest
import trustme

import penstock
from penstock import Service, Settings
from penstock.errors import LinkError
from tests.waiting import until


def server_context(ca: trustme.CA) -> ssl.SSLContext:
    """Return the context of a server that requires certificates of its clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)
    context.verify_mode = ssl.CERT_REQUIRED
    ca.configure_trust(context)
    return context


def refusals(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]


@pytest.mark.parametrize("client", ["no certificate", "foreign certificate", "old version"])
async def test_failed_handshake_is_logged_with_its_reason(client: str, caplog: pytest.LogCaptureFixture) -> None:
    ca = trustme.CA()
    context = ssl.create_default_context()
    ca.configure_trust(context)
    server_side = server_context(ca)
    if client == "foreign certificate":
        trustme.CA().issue_cert("me@example.org").configure_cert(context)
    elif client == "old version":
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        server_side.minimum_version = ssl.TLSVersion.TLSv1_3
    async with penstock.serve(Service(), "rsocket+tls://localhost:0", ssl=server_side) as server:
        with pytest.raises(LinkError):
            async with penstock.connect(server.urls[0], ssl=context, confirm=True):
                pass
        await until(lambda: bool(refusals(caplog)))
    [line] = refusals(caplog)
    assert "refused: the TLS handshake failed: " in line


async def test_bytes_that_are_no_handshake_are_logged_up_to_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "penstock.aio")
    settings = Settings(max_refusals_per_address=3)
    context = server_context(trustme.CA())
    async with penstock.serve(Service(), "rsocket+tls://127.0.0.1:0", ssl=context, settings=settings) as server:
        port = int(server.urls[0].rpartition(":")[2])
        for _ in range(10):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"plain bytes" * 10)
            await reader.read()
            writer.close()
        await until(lambda: len([each for each in caplog.records if "handshake failed" in each.getMessage()]) == 10)
    assert len([line for line in refusals(caplog) if "handshake failed" in line]) == 3
