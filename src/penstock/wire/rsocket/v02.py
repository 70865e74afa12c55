"""The layouts of ReactiveSocket 0.2: those of RSocket 1.0 but for metadata, which more types carry, and the S flag.

The codec is RSocket 1.0's, with this table. Comments name sections of ReactiveSocket 0.2's document.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from .frames import FrameType
from .layouts import RSOCKET_V1, Layout, Metadata

__all__ = ["REACTIVESOCKET_V02"]


def _layouts() -> dict[int, Layout]:
    # Metadata Optional Header: where its length runs past the frame, the entire frame MUST be ignored.
    table = {
        type: replace(layout, metadata=Metadata.FORGIVEN) if layout.metadata is Metadata.COUNTED else layout
        for type, layout in RSOCKET_V1.items()
    }
    # LEASE, METADATA_PUSH, CANCEL, ERROR: the M flag, and the metadata header with its length.
    for type in (FrameType.LEASE, FrameType.METADATA_PUSH, FrameType.CANCEL, FrameType.ERROR):
        table[type] = replace(table[type], metadata=Metadata.FORGIVEN, flags=("metadata",))
    setup = table[FrameType.SETUP]
    # SETUP Frame: S, strict interpretation of data and metadata.
    table[FrameType.SETUP] = replace(setup, flags=(*setup.flags, "strict"))
    return table


REACTIVESOCKET_V02: Final[Mapping[int, Layout]] = _layouts()
