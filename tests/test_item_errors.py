from __future__ import annotations

import pytest

from weirpool.item_errors import ItemErrors
from weirpool.river.item_errors import RiverItemErrors
from weirpool.river.streams import RiverStreams
from weirpool.wire.river.codec import codec_of


@pytest.mark.parametrize("is_client", [True, False])
def test_river_has_errors_between_items(is_client: bool) -> None:
    errors: ItemErrors = RiverItemErrors(codec_of("json"), RiverStreams(8), is_client)
    assert {"payload_of", "report", "error_of"} <= set(dir(errors))
