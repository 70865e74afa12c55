"""A service whose streams are audited."""

from __future__ import annotations

from collections.abc import Iterator

import penstock

service = penstock.audited(penstock.Service())


@service.stream("numbers")
def numbers(request: penstock.Payload) -> Iterator[bytes]:
    for number in range(int(request.data)):
        yield b"%d" % number
