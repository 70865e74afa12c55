"""The fast way into JSON, which only the compiled build has; see `scanning_json.pyx`."""

from __future__ import annotations

__all__ = ["is_body"]


def is_body(data: bytes) -> bool:
    """Whether `data` is a body in JSON that can be sent as it is, without any doubt.

    Returns:
        False leaves it to :meth:`penstock.wire.river.codec.RiverCodec.body`.

    """
    return False
