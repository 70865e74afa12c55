from __future__ import annotations

import pytest

from tests.testing.serving import FAMILY
from tests.waiting import until
from weirpool import Payload
from weirpool.testing.ends import PATIENCE
from weirpool.testing.requester import RawRequester
from weirpool.testing.responder import RawPublisher


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
