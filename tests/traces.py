"""Finding secrets in files, however they are spelled there."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from pathlib import Path

__all__ = ["holders", "traces"]


def traces(secret: bytes) -> list[bytes]:
    """Return what holds a secret, if it is there: as it is, in hexadecimal, or anywhere in what is in base64."""
    found = [secret, secret.hex().encode()]
    for before in range(3):
        # Characters that this secret alone decides.
        encoded = b64encode(bytes(before) + secret)
        found.append(encoded[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6])
    return found


def holders(folder: Path, *secrets: bytes) -> set[str]:
    """Return the names of the files in a folder, and in those below it, that hold any of these secrets."""
    spelled = [trace for secret in secrets for trace in traces(secret)]
    found = set()
    for path in folder.rglob("*"):
        # Some are replaced meanwhile.
        with suppress(FileNotFoundError, IsADirectoryError):
            data = path.read_bytes()
            if any(trace in data for trace in spelled):
                found.add(path.name)
    return found
