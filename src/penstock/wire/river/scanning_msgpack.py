"""The fast way into MessagePack, which only the compiled build has; see `scanning_msgpack.pyx`."""

from __future__ import annotations

__all__ = ["is_body"]


def is_body(data: bytes) -> bool:
    """Whether `data` is a body in MessagePack that can be sent as it is, without any doubt.

    Returns:
        False leaves it to :meth:`penstock.wire.river.codec.RiverCodec.body`.

    """
    return False
