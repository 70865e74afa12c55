"""Encrypts what a successor needs to resume the publishers' sessions: tokens, and requests with their credentials."""

from __future__ import annotations

import base64
import binascii
import os
from typing import Final

from .._build import pip_command
from ..errors import JournalError, LocalError

__all__ = ["Vault", "new_key"]

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_VERSION: Final = b"\x01"


def new_key() -> str:
    """Return a random key, in base64."""
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


class Vault:
    """Encrypts and decrypts secrets with AES-256-GCM. A secret is bound to its group and source.

    Args:
        key: 32 bytes in base64; see :func:`new_key`. All collectors of a group have the same one.
        group: The group's name.

    Raises:
        LocalError: The key is invalid, or the package `cryptography` is missing.

    """

    def __init__(self, key: str, group: str) -> None:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise LocalError(
                "the package cryptography is missing, which the secrets of a group need; install it with "
                f"`{pip_command('store')}`"
            ) from None
        try:
            octets = base64.b64decode(key.strip(), validate=True)
        except (binascii.Error, ValueError):
            octets = b""
        if len(octets) != KEY_BYTES:
            # The key itself must not appear in an error.
            raise LocalError(f"the key of group {group!r} must be {KEY_BYTES} random bytes in base64")
        self._cipher = AESGCM(octets)
        self._group = group

    def seal(self, source: str, secret: bytes) -> bytes:
        """Return a secret in encrypted form."""
        nonce = os.urandom(_NONCE_BYTES)
        return _VERSION + nonce + self._cipher.encrypt(nonce, secret, self._context(source))

    def open(self, source: str, sealed: bytes) -> bytes:
        """Return a secret in plain form; `JournalError` if it was encrypted with another key, or damaged."""
        from cryptography.exceptions import InvalidTag

        nonce = sealed[1 : 1 + _NONCE_BYTES]
        if not sealed.startswith(_VERSION) or len(nonce) < _NONCE_BYTES:
            raise JournalError(f"the secret of source {source!r} in group {self._group!r} has an unknown form")
        try:
            return self._cipher.decrypt(nonce, sealed[1 + _NONCE_BYTES :], self._context(source))
        except InvalidTag:
            raise JournalError(
                f"the secret of source {source!r} in group {self._group!r} cannot be decrypted; give this collector "
                "the key with which it was encrypted"
            ) from None

    def proof(self) -> bytes:
        """Return what tells other collectors whether they have this key."""
        return self.seal("", b"")

    def check(self, proof: bytes) -> None:
        """Check that a proof was made with this key; `JournalError` if not."""
        try:
            self.open("", proof)
        except JournalError:
            raise JournalError(
                f"group {self._group!r} has another key than this collector, which could not resume its sessions; give "
                "it the group's key"
            ) from None

    def _context(self, source: str) -> bytes:
        return f"{self._group}/{source}".encode()
