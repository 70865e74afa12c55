"""Generated clients against the services that their schemas came from, over River and RSocket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pydantic
import pytest

import weirpool
from tests.schema.shop import service
from tests.schema.test_codegen import loaded, served, source_of
from tests.schema.test_export import REFERENCE
from tests.schema.type_checking import check_types
from weirpool import Settings

RIVER = ("river+memory://shop?codec=json", "river+memory://shop?codec=msgpack", "river+ws://127.0.0.1:0/")
JSON = Settings(data_mime="application/json")
USER = """
import weirpool
from shop_client import Circle, Odd, OddName, Shop, Tree


async def use(peer: weirpool.Peer) -> None:
    shop = Shop(peer)
    tree = Tree(value=1, children=[Tree(value=2, parent=None)])
    async with shop.each(tree) as trees:
        values: list[int] = [each.value async for each in trees]
    total: int = await shop.sum(1, [tree])
    init = Odd(class_="c", a_b=1)
    async with shop.import_(init, [Circle(r=1)]) as shapes:
        async for shape in shapes:
            area: float = shape.r if hasattr(shape, "r") else shape.side
    colours = await OddName(peer).do_it(["red", "dark-blue"])
    print(values, total, area, colours)
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return loaded(source_of(service.schema()), tmp_path, monkeypatch)


def everything(client: ModuleType, text: str) -> Any:
    """Return a value with every feature."""
    leaf = client.Tree(value=2, parent=None)
    return client.All(
        data=b"\xff\x00",
        text=text,
        nullable=None,
        colour="dark-blue",
        shape=client.Square(side=1.5),
        level="low",
        number=2,
        tree=client.Tree(value=2**60, children=[leaf, leaf]),
        odd=client.Odd(class_="c", a_b=-1, self_=False, none=None, under="u"),
        many={"a": [1, 2], "": []},
        mixed="m",
        anything={"x": [None, 1.5]},
        defaulted=2.5,
    )


@pytest.mark.parametrize("url", [*RIVER, "rsocket+memory://shop"])
async def test_every_schema_feature_is_carried(client: ModuleType, url: str) -> None:
    settings = JSON if url.startswith("rsocket") else Settings()
    async with weirpool.serve(service, url) as server, weirpool.connect(server.urls[0], settings=settings) as peer:
        shop = client.Shop(peer)
        asked = everything(client, "x")
        answer = await shop.same(asked)
        assert isinstance(answer, client.All)
        assert (answer.data, answer.tree.value, answer.odd.a_b, answer.nullable) == (b"\xff\x00", 2**60, -1, None)
        assert isinstance(answer.shape, client.Square)
        assert answer.optional is msgspec.UNSET and answer.flags == []
        assert answer.anything == {"x": [None, 1.5]}
        with pytest.raises(client.Gone) as error:
            await shop.same(everything(client, "gone"))
        assert (error.value.message, error.value.extras.data) == ("it is gone", b"\xff\x00")
        with pytest.raises(client.Plain):
            await shop.same(everything(client, "plain"))
        async with shop.each(asked.tree) as trees:
            assert [tree.value async for tree in trees] == [2, 2]
        assert await shop.sum(1, [asked.tree]) == 1 + 2**60
        circle, square = client.Circle(r=1), client.Square(side=2, corners=(1, 2))

        async def shapes() -> AsyncIterator[Any]:
            yield circle
            yield square

        async with shop.import_(client.Odd(class_="c", a_b=1), shapes()) as items:
            found = [item async for item in items]
        assert [type(item).__name__ for item in found] == ["Circle", "Square"]
        assert await client.OddName(peer).do_it(["red"]) == {"red": "red"}


@pytest.mark.parametrize("url", RIVER)
async def test_the_client_of_the_reference_s_schema_works_over_river(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = loaded(source_of(msgspec.json.decode(REFERENCE.read_bytes())), tmp_path, monkeypatch)
    async with weirpool.serve(served(client), url) as server, weirpool.connect(server.urls[0]) as peer:
        demo = client.Demo(peer)
        assert await demo.add(client.DemoAddInit(a=1, b=2)) == client.DemoAddOutput(sum=3)
        with pytest.raises(client.Negative) as error:
            await demo.add(client.DemoAddInit(a=-1, b=2))
        assert error.value.extras == client.NegativeExtras(a=-1)
        data = client.DemoBytesInit(data=b"\xff", n=2**60)
        assert (await demo.bytes_(data)).data == b"\xff"
        async with demo.count(client.DemoCountInit(upto=3, everyMs=0)) as counts:
            assert [count.i async for count in counts] == [0, 1, 2]
        assert (await demo.sum(client.DemoSumInit(start=1), [client.DemoSumInput(n=1)])).total == 2
        async with demo.echo(client.DemoEchoInit(prefix="> "), [client.DemoEchoInput(msg="a")]) as echoes:
            assert [echo.response async for echo in echoes] == ["> a"]


@pytest.mark.slow
def test_type_checkers_check_users_of_a_client(tmp_path: Path) -> None:
    (tmp_path / "shop_client.py").write_text(source_of(service.schema()))
    (tmp_path / "user.py").write_text(USER)
    check_types(tmp_path / "user.py", tmp_path / "shop_client.py")


class Renamed(pydantic.BaseModel):
    number: int = pydantic.Field(alias="inWire", serialization_alias="outWire")

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def twice(self) -> int:
        return 2 * self.number


async def test_what_a_model_writes_is_read_although_it_reads_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renaming = weirpool.Service()

    @renaming.call("models.echo")
    async def echo(request: Renamed) -> Renamed:
        return request

    made = loaded(source_of(renaming.schema()), tmp_path, monkeypatch)
    url = "rsocket+memory://renamed"
    async with weirpool.serve(renaming, url), weirpool.connect(url, settings=JSON) as peer:
        answer = await made.Models(peer).echo(made.Renamed(inWire=3))
    assert (answer.outWire, answer.twice) == (3, 6)
