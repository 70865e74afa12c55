from __future__ import annotations

import pytest

import weirpool
from weirpool import Bearer, Metadata, Payload, Service, SetupRejected, Simple
from weirpool.receiving.admission import Admission


@pytest.mark.parametrize(
    ("shown", "admitted"),
    [
        (Metadata(auth=Simple("ada", "x")).encode(), True),
        (Metadata(auth=Simple("ada", "y")).encode(), False),
        (Metadata(auth=Bearer("x")).encode(), False),
        (b"junk", False),
        (None, False),
    ],
)
async def test_only_the_right_credentials_are_admitted(shown: bytes | None, admitted: bool) -> None:
    service = Service()
    service.call("a")(lambda request: b"yes")
    acceptor = Admission(Simple("ada", "x"))
    async with weirpool.serve(service, "rsocket+memory://admission", acceptor=acceptor) as server:
        async with weirpool.connect(server.urls[0], setup=Payload(b"", shown)) as peer:
            if admitted:
                assert (await peer.call("a")).data == b"yes"
            else:
                with pytest.raises(SetupRejected, match="missing or wrong"):
                    await peer.call("a")
