from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from weirpool.access.listening import server_tls, without_files
from weirpool.errors import LocalError

TLS = "rsocket+tls://127.0.0.1:7878"
TCP = "rsocket+tcp://127.0.0.1:7878"
QUIC = "rsocket+quic://127.0.0.1:7878"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ca.pem, server.pem with its key in it, and empty.pem."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    (folder / "empty.pem").touch()
    return folder


def test_the_files_are_in_the_urls_of_encrypted_transports(files: Path) -> None:
    pem, ca = str(files / "server.pem"), str(files / "ca.pem")
    assert server_tls([TLS, QUIC]) == [TLS, QUIC]
    urls = server_tls([TLS, QUIC, TCP], None, pem, pem)
    for found, given in zip(urls[:2], (TLS, QUIC), strict=True):
        assert found.startswith(f"{given}?cert=") and "&key=" in found and "ca=" not in found
    assert urls[2] == TCP
    [found] = server_tls([TLS], ca, pem)
    assert "&ca=" in found
    assert without_files(found) == TLS
    assert without_files(f"{found}&codec=json") == f"{TLS}?codec=json"


def test_files_without_effect_are_errors(files: Path) -> None:
    pem, ca, empty = (str(files / name) for name in ("server.pem", "ca.pem", "empty.pem"))
    with pytest.raises(LocalError, match="does not support client certificates"):
        server_tls([QUIC], ca, pem)
    with pytest.raises(LocalError, match="needs the server's own cert"):
        server_tls([TLS], ca)
    with pytest.raises(LocalError, match=r"is not encrypted; write \+tls://"):
        server_tls([TCP], ca, pem)
    with pytest.raises(LocalError, match="a key needs its certificate"):
        server_tls([TLS], None, None, pem)
    with pytest.raises(LocalError, match=r"empty\.pem"):
        server_tls([TLS], empty, pem)
