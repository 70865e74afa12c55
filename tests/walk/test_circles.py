"""Import circles are found, whatever kind of import closes them."""

from __future__ import annotations

import pytest
from walk.circles import circles, graph
from walk.sources import Source


def found(**texts: str) -> list[list[str]]:
    """Return the circles among files of a folder `aio`."""
    return circles(graph([Source(f"aio/{name}.py", text) for name, text in texts.items()]))


def test_chain_is_no_circle() -> None:
    assert found(driver="from .flow import Flow", flow="from . import inbound", inbound="import asyncio") == []


@pytest.mark.parametrize(
    "closing",
    [
        "from .driver import Driver",
        "from . import driver",
        "from ..aio.driver import Driver",
        "from weirpool.aio.driver import Driver",
        "import weirpool.aio.driver",
        "if TYPE_CHECKING:\n    from .driver import Driver",
        "def run():\n    from .driver import Driver",
    ],
)
def test_import_that_closes_a_circle_is_found(closing: str) -> None:
    assert found(driver="from .flow import Flow", flow="from .inbound import Inbound", inbound=closing) == [
        ["aio.driver", "aio.flow", "aio.inbound"]
    ]


def test_circles_apart_are_told_apart() -> None:
    pairs = {"a": "from . import b", "b": "from . import a", "c": "from . import d, a", "d": "from . import c"}
    assert found(**pairs) == [["aio.a", "aio.b"], ["aio.c", "aio.d"]]


def test_folder_is_a_module_of_its_own() -> None:
    sources = [
        Source("schema/__init__.py", "from .river import RiverJson"),
        Source("schema/river.py", "from . import shapes"),
        Source("schema/shapes.py", "from .. import schema"),
    ]
    assert circles(graph(sources)) == [["schema", "schema.river", "schema.shapes"]]


def test_cython_imports_count() -> None:
    sources = [Source("wire/a.pxd", "from .b cimport Run\nfrom libc.string cimport memcpy"), Source("wire/a.py", "")]
    assert circles(graph([*sources, Source("wire/b.py", "from . import a")])) == [["wire.a", "wire.b"]]
