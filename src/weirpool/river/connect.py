"""Creates a client's session: a new one, or one from the checkpoint of an earlier process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ..errors import LocalError
from ..session import ClientStart
from ..settings import Settings
from ..wire.river.codec import codec_of
from .checkpoint import decode_checkpoint
from .identity import SERVER, Identity, base36, tag_of
from .session import RiverSession

__all__ = ["client", "new_client", "restored_client"]

Renew: TypeAlias = Callable[[], bytes] | None


def client(start: ClientStart) -> RiverSession:
    """Return a client's session. See :func:`weirpool.protocols.client_session`."""
    identity, metadata, renew = Identity.of(start.options), start.setup.data, start.renew
    renewed = None if renew is None else lambda: renew().data
    checkpoint = start.checkpoint_with_secret()
    if checkpoint is None:
        return new_client(start.settings, identity, metadata, start.random, renewed)
    return restored_client(start.settings, identity, metadata, start.random, checkpoint, start.secret, renewed)


def new_client(
    settings: Settings, identity: Identity, metadata: bytes, random: bytes, renew: Renew = None
) -> RiverSession:
    """Return a client's new session.

    Args:
        settings: Limits and timeouts.
        identity: The codec and the ids of both sides.
        metadata: The metadata of its handshakes, encoded by the codec; empty: none.
        random: At least 16 unpredictable bytes, because the session's id is its key.
        renew: Returns the metadata for the second and later handshakes; None: it stays the same.

    Raises:
        LocalError: `metadata` is not a valid body for this codec, or `random` is too short.

    """
    if len(random) < 16:
        raise LocalError(f"a River session needs 16 random bytes, not {len(random)}")
    key = base36(int.from_bytes(random, "big"))
    body = codec_of(identity.codec).body(metadata) if metadata else b""
    tag = tag_of(key)
    us, peer = identity.client or f"client-{tag}", identity.server or SERVER
    return RiverSession(settings, identity.codec, True, us, peer, f"session-{key}", f"{tag}-", body, renew)


def restored_client(
    settings: Settings,
    identity: Identity,
    metadata: bytes,
    random: bytes,
    checkpoint: bytes,
    secret: bytes,
    renew: Renew = None,
) -> RiverSession:
    """Return the client's session that `checkpoint` describes. The next link resumes it.

    Args:
        settings: Limits and timeouts.
        identity: The codec, which must be the checkpoint's. The ids are taken from the checkpoint.
        metadata: See :func:`new_client`.
        random: Random bytes that distinguish this process's ids from those of the earlier one.
        checkpoint: The checkpoint that the earlier process made of the session.
        secret: The session's `secret`.
        renew: See :func:`new_client`.

    Raises:
        LocalError: `checkpoint` is invalid or has another codec, or `secret` is not that of a River session.
        ResumeRejected: The checkpoint cannot show whether the server still has the session.

    """
    kept = decode_checkpoint(checkpoint, identity.codec)
    body = codec_of(identity.codec).body(metadata) if metadata else b""
    tag = f"{tag_of(random.hex())}-"
    try:
        session_id = secret.decode()
    except UnicodeDecodeError as error:
        raise LocalError("the secret is not that of a River session") from error
    session = RiverSession(settings, identity.codec, True, kept.us, kept.peer, session_id, tag, body, renew)
    session.restore(kept)
    return session
