from __future__ import annotations

import pytest

from tests.schema.shop import service
from tests.schema.test_codegen import EVIL, hostile
from weirpool import LocalError
from weirpool.schema.shapes import Loss
from weirpool.schema.typescript import FLAVOURS, generate_typescript


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_hostile_text_stays_in_literals_and_comments(flavour: str) -> None:
    source = generate_typescript(hostile(), flavour)
    assert EVIL not in source
    assert not any(line.startswith(("import os", "os.abort")) for line in source.splitlines())


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_same_schema_gives_the_same_source(flavour: str) -> None:
    assert generate_typescript(service.schema(), flavour) == generate_typescript(service.schema(), flavour)


def test_losses_are_listed_in_the_file() -> None:
    losses: list[Loss] = []
    source = generate_typescript(service.schema(), "river-1.1", losses)
    assert [loss.place for loss in losses] == ["odd-name.do it", "shop.sum"]
    assert all(f"//   {loss.place}: {loss.reason}" in source for loss in losses)


def test_unknown_library_is_an_error() -> None:
    with pytest.raises(LocalError, match="use one of rsocket, river,"):
        generate_typescript({"services": {}}, "grpc")
