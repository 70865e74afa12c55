"""Finds secrets in files, in several encodings."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from pathlib import Path

__all__ = ["holders", "traces"]


def traces(secret: bytes) -> list[bytes]:
    """Return the encodings of a secret: raw, hexadecimal, and base64 at each alignment."""
    found = [secret, secret.hex().encode()]
    for before in range(3):
        # The characters that depend only on the secret.
        encoded = b64encode(bytes(before) + secret)
        found.append(encoded[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6])
    return found


def holders(folder: Path, *secrets: bytes) -> set[str]:
    """Return the names of the files in a folder, and in its subfolders, that contain any of these secrets."""
    encoded = [trace for secret in secrets for trace in traces(secret)]
    found = set()
    for path in folder.rglob("*"):
        # A file may be replaced meanwhile.
        with suppress(FileNotFoundError, IsADirectoryError):
            data = path.read_bytes()
            if any(trace in data for trace in encoded):
                found.add(path.name)
    return found
