"""What is generated for rsocket-js; `python -m interop` compiles it and runs programs that use it."""

from __future__ import annotations

from tests.schema.shop import service
from weirpool import Service
from weirpool.schema.typescript import generate_typescript


def test_methods_have_the_types_of_their_procedures() -> None:
    source = generate_typescript(service.schema(), "rsocket")
    for line in (
        "  each(init: Tree, options: StreamOptions = {}): Subscription<Tree> {",
        "  same(init: All, options: Options = {}): Promise<All> {",
        '    return this.#peer.call("shop.same", init, [Gone, Plain], options);',
        "  sum(init: number, items: Items<Tree>, options: Options = {}): Promise<number> {",
        "export class Gone extends TypedError<All> {",
    ):
        assert line in source.splitlines()


def test_names_that_javascript_calls_are_not_methods() -> None:
    odd = Service()
    for name in ("then", "constructor"):
        odd.call(f"odd.{name}", init=int, response=int)(lambda value: value)
    source = generate_typescript(odd.schema(), "rsocket")
    assert "  then_(init: number" in source and "  constructor_(init: number" in source
