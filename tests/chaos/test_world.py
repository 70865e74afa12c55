from __future__ import annotations

import pytest
from chaos.sources import SOURCES, Source
from chaos.world import settings_for

from weirpool import Settings
from weirpool.urls import parse_urls


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_collectors_get_the_settings_that_their_protocol_uses(source: Source) -> None:
    url = source.url("tcp://127.0.0.1:1")
    given = dict(each.split("=") for each in settings_for(url))
    # A setting without effect is refused.
    assert parse_urls([url], Settings(**{name: float(value) for name, value in given.items()}), serving=False)
    assert ("keepalive_lifetime" in given, "session_grace" in given) == ("socket" in url, "river" in url)
