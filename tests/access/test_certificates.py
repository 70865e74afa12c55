from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from weirpool import LocalError
from weirpool.access.certificates import load_certificate, tls_context


def test_files_are_loaded_or_named(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("a@example.org").private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
    context = tls_context(ssl.Purpose.SERVER_AUTH, str(tmp_path / "ca.pem"))
    load_certificate(context, str(tmp_path / "client.pem"), None)
    assert len(context.get_ca_certs()) == 1
    with pytest.raises(LocalError, match="cannot read certificates from '/no/such'"):
        tls_context(ssl.Purpose.SERVER_AUTH, "/no/such")
    with pytest.raises(LocalError, match="from '/no/cert' and '/no/key'"):
        load_certificate(context, "/no/cert", "/no/key")
