from __future__ import annotations

import pytest

from penstock import Payload
from penstock.testing.ends import PATIENCE
from penstock.testing.requester import RawRequester
from penstock.testing.responder import RawPublisher
from tests.testing.serving import FAMILY
from tests.waiting import until


@pytest.mark.parametrize("protocol", FAMILY)
async def test_publisher_sees_frames_after_the_end(protocol: str) -> None:
    async with RawPublisher(f"{protocol}+memory://raw", PATIENCE) as publisher:
        async with RawRequester(publisher.url, PATIENCE) as raw:
            stream = raw.opened("tests.any", b"", 3)
            more, cancel = stream.request(2), stream.cancel()
            await publisher.subscribed()
            assert (publisher.demand(), publisher.granted) == (3, [3])
            publisher.write(publisher.send(Payload(b"one")) + publisher.complete())
            await stream.ends()
            raw.write(more + cancel)
            await until(lambda: publisher.canceled)
            assert publisher.granted == [3, 2]
            assert [item.data for item in stream.items] == [b"one"]
