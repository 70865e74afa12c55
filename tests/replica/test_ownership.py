from __future__ import annotations

import pytest

from tests.replica.groups import MemoryStore, Outage, rows, sequence, update
from weirpool.errors import JournalCorrupt, StoreError
from weirpool.objects.ports import Data
from weirpool.objects.probe import ConditionIgnored
from weirpool.replica import ownership as ownership_module
from weirpool.replica.bundle import Part
from weirpool.replica.ownership import Ownership, Superseded, Update, take
from weirpool.replica.sequence import Sequence


def ends(owned: Ownership) -> dict[str, int]:
    return {source: part.end for source, part in owned.logs.items()}


def lose_a_request(store: MemoryStore, owned: Ownership) -> None:
    """Append two rows of "a" while the store does not answer."""

    def lose(what: str) -> None:
        raise Outage("the store does not answer")

    store.step = lose
    with pytest.raises(StoreError):
        owned.append([update(owned, "a", 2, "x")])
    store.step = lambda what: None


def test_a_successor_knows_every_log() -> None:
    store = MemoryStore()
    first = take(sequence(store))
    first.append([update(first, "a", 3, "x"), update(first, "b", 1, "x")])
    first.append([update(first, "a", 2, "x")])
    second = take(sequence(store))
    assert ends(second) == {"a": 5, "b": 1}
    assert second.epoch == 1
    part = second.logs["a"]
    assert (part.uuid, part.first, part.size, part.state, part.identity) == ("log of a", 5, 0, b"state 5", b"identity")
    second.append([update(second, "a", 1, "y")])
    third = take(sequence(store))
    assert ends(third) == {"a": 6, "b": 1}
    assert rows(sequence(store), "a") == dict.fromkeys(range(5), "x") | {5: "y"}


def test_a_former_owner_is_fenced() -> None:
    store = MemoryStore()
    first = take(sequence(store))
    second = take(sequence(store))
    for _ in range(2):
        with pytest.raises(Superseded, match="belongs to another collector"):
            first.append([update(first, "a", 1, "x")])
    second.append([update(second, "a", 1, "y")])
    assert rows(sequence(store), "a") == {0: "y"}


def test_secrets_are_kept_until_they_change() -> None:
    store = MemoryStore()
    owned = take(sequence(store))
    for secret in (b"one", None, b""):
        owned.append([Update(Part("a", "", 0, 0, secret=secret))])
        assert take(sequence(store)).logs["a"].secret == (b"one" if secret is None else secret)
        owned = take(sequence(store))


def test_snapshots_spare_older_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership_module, "SNAPSHOT_BUNDLES", 4)
    store = MemoryStore()
    bundles = sequence(store)
    owned = take(bundles)
    owned.append([update(owned, "a", 3, "x")])
    for _ in range(9):
        owned.append([update(owned, "b", 1, "x")])
    snapshots = [header.snapshot for header in bundles.headers(range(11))]
    assert snapshots == [0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8]
    owned.release({"a": 3, "b": 8})
    owned.append()
    owned.sweep()
    assert bundles.numbers() == [0, 10, 11]
    successor = take(bundles)
    assert ends(successor) == {"a": 3, "b": 9}
    assert successor.logs["a"].identity == b"identity"


def test_only_sealed_bundles_are_deleted() -> None:
    store = MemoryStore()
    bundles = sequence(store)
    owned = take(bundles)
    for source in "abab":
        owned.append([update(owned, source, 2, "x")])
    owned.release({"a": 2, "b": 1})
    owned.append()
    owned.sweep()
    assert bundles.numbers() == [0, 2, 3, 4, 5]
    owned.release({"a": 4, "b": 4})
    owned.append()
    owned.sweep()
    assert ends(take(bundles)) == {"a": 4, "b": 4}


def test_nothing_is_deleted_before_that_is_recorded() -> None:
    store = MemoryStore()
    bundles = sequence(store)
    owned = take(bundles)
    owned.append([update(owned, "a", 2, "x")])
    owned.append([update(owned, "a", 2, "x")])
    owned.release({"a": 2})
    owned.sweep()
    assert bundles.numbers() == [0, 1, 2]
    assert ends(take(bundles)) == {"a": 4}


def test_the_first_bundle_of_each_owner_stays() -> None:
    store = MemoryStore()
    bundles = sequence(store)
    late = take(bundles)
    for _ in range(3):
        owned = take(bundles)
        owned.append([update(owned, "a", 2, "x")])
        owned.release(ends(owned))
        owned.append([update(owned, "a", 1, "x")])
        owned.append()
        owned.sweep()
    with pytest.raises(Superseded):
        late.append([update(late, "a", 1, "late")])
    assert "late" not in rows(bundles, "a").values()


def test_an_answer_that_is_lost_is_asked_for_again() -> None:
    store = MemoryStore()
    owned = take(sequence(store))

    def lose(what: str) -> None:
        if what == "after create":
            raise Outage("the answer is lost")

    store.step = lose
    with pytest.raises(StoreError):
        owned.append([update(owned, "a", 2, "x")])
    # What is found there is its own bundle.
    owned.settle()
    store.step = lambda what: None
    assert ends(owned) == {"a": 2}
    owned.append([update(owned, "a", 1, "x")])
    assert rows(sequence(store), "a") == dict.fromkeys(range(3), "x")


class Overwriting(MemoryStore):
    """A store that ignores the condition."""

    def create(self, name: str, data: Data) -> bool:
        self.put(name, data)
        return True


def test_a_store_that_ignores_the_condition_has_no_owner() -> None:
    store = Overwriting()
    with pytest.raises(ConditionIgnored):
        take(sequence(store))
    assert store.objects == {}


def test_a_former_owner_stops_although_the_store_no_longer_holds_the_condition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sequence, "probe", lambda bundles: None)
    store = Overwriting()
    first = take(sequence(store))
    first.append([update(first, "a", 2, "x")])
    second = take(sequence(store))
    with pytest.raises(Superseded):
        first.append([update(first, "a", 1, "x")])
    second.append([update(second, "a", 1, "y")])
    with pytest.raises(Superseded):
        first.append()
    assert rows(sequence(store), "a") == {0: "x", 1: "x", 2: "y"}
    assert ends(take(sequence(store))) == {"a": 3}


def test_a_request_that_is_lost_is_made_again() -> None:
    store = MemoryStore()
    owned = take(sequence(store))
    lose_a_request(store, owned)
    # The next call of append settles it too.
    owned.append([update(owned, "b", 1, "x")])
    assert ends(take(sequence(store))) == {"a": 2, "b": 1}


def test_a_lost_request_does_not_pass_for_another_ones_bundle() -> None:
    store = MemoryStore()
    owned = take(sequence(store))
    lose_a_request(store, owned)
    take(sequence(store))
    with pytest.raises(Superseded):
        owned.settle()
    assert ends(owned) == {}


def test_damage_is_told_and_no_reason_to_take_over() -> None:
    store = MemoryStore()
    bundles = sequence(store)
    owned = take(bundles)
    owned.append([update(owned, "a", 2, "x")])
    owned.append()
    del store.objects[bundles.name(1)]
    with pytest.raises(JournalCorrupt):
        take(bundles)
    owned.append()
