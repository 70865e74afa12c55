"""Groups to try things on: a store that stops at any step, and rows whose content tells who wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from weirpool.errors import StoreError
from weirpool.objects.ports import Data, Listing, Names, Store
from weirpool.replica.bundle import Part
from weirpool.replica.ownership import Ownership, Update
from weirpool.replica.sequence import Sequence


class MemoryStore:
    """A store in memory, which calls `step` before and after each request takes effect."""

    conditional = True
    uri = "memory://test"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.step: Callable[[str], None] = lambda what: None

    def create(self, name: str, data: Data) -> bool:
        self.step("before create")
        missing = name not in self.objects
        if missing:
            self.objects[name] = bytes(data)
        self.step("after create")
        return missing

    def put(self, name: str, data: Data) -> None:
        self.step("before put")
        self.objects[name] = bytes(data)
        self.step("after put")

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
        self.step("before get")
        data = self.objects.get(name)
        self.step("after get")
        return None if data is None else data[start:] if length is None else data[start : start + length]

    def list(self, folder: str, after: str = "") -> Listing:
        self.step("before list")
        found = [(name, len(data)) for name, data in sorted(self.objects.items())]
        self.step("after list")
        return [(name, size) for name, size in found if name.startswith(f"{folder}/") and name > after]

    def folders(self, folder: str = "") -> Names:
        raise AssertionError

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            self.step("before delete")
            self.objects.pop(name, None)
            self.step("after delete")


def sequence(store: Store) -> Sequence:
    return Sequence(store, "edge")


def update(owned: Ownership, source: str, count: int, tag: str) -> Update:
    """Return so many rows of a source, each a line with its position and who wrote it."""
    before = owned.logs.get(source)
    first = 0 if before is None else before.end
    lines = [b"%d %s\n" % (position, tag.encode()) for position in range(first, first + count)]
    part = Part(
        source=source,
        uuid=f"log of {source}",
        first=first,
        end=first + count,
        head=f"head {first + count}",
        size=sum(map(len, lines)),
        state=b"state %d" % (first + count),
        identity=b"identity" if before is None else None,
    )
    return Update(part, lines)


def rows(bundles: Sequence, source: str) -> dict[int, str]:
    """Return who wrote each row of a source, by position, as far as the bundles are there."""
    found: dict[int, str] = {}
    for number in bundles.numbers():
        bundle = bundles.read(number)
        assert bundle is not None
        for line in bytes(bundle.batches(source)).decode().splitlines():
            position, tag = line.split()
            assert int(position) not in found
            found[int(position)] = tag
    return found


class Outage(StoreError):
    """The store does not answer."""
