"""What a client of a served journal may set: positions, counts, names and losses (THREATS 113)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.archive.logs import seal_all
from tests.journal.logs import SOURCE, append, write
from weirpool.errors import JournalError, LocalError
from weirpool.journal import Journal, JournalWriter, gaps
from weirpool.journal.coordinator import FolderCoordinator
from weirpool.journal.gaps import Gap
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import cursors
from weirpool.serving import capacity
from weirpool.serving.collectors import Collectors
from weirpool.serving.coordinator import RemoteCoordinator
from weirpool.serving.messages import Describe

from .served import Served, serving, until

ROWS = 30
BEYOND = [ROWS + 1, 10**6, 2**62, 2**63, 2**64, 10**4000]
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture(params=["hot", "trimmed", "sealed"])
def journal(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A journal with one log of some rows."""
    write(tmp_path, *[10] * 3, segment_bytes=1)
    if request.param == "trimmed":
        Journal(tmp_path).delete(SOURCE, 20)
    if request.param == "sealed":
        seal_all(tmp_path)
    return tmp_path


@pytest.fixture
def served(journal: Path) -> Iterator[Served]:
    with serving(journal) as found:
        yield found


def ask(served: Served, name: str, question: object, kind: Any = None) -> Any:
    return Collectors(served.url).call(SOURCE, name, question, kind)


def opens(journal: Path) -> None:
    """Check that a collector can open the log, and nothing was changed."""
    assert not cursors(log_folder(journal, SOURCE))
    with JournalWriter.open(journal, SOURCE, fsync=False) as writer:
        assert append(writer, 1) == ROWS + 1


def test_positions_beyond_the_end_are_refused(journal: Path, served: Served) -> None:
    there = RemoteCoordinator(served.url)
    for position in BEYOND:
        for attempt in (
            lambda position: there.commit(SOURCE, "evil", position, query=None),
            lambda position: there.commit(SOURCE, "evil", position, query="q"),
            lambda position: there.trim(SOURCE, "evil@q", position, query="q", retain_bytes=0),
        ):
            with pytest.raises(LocalError, match=f"cannot be at position .*the log ends at {ROWS};"):
                attempt(position)
    opens(journal)


@pytest.mark.parametrize("protocol", ["reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams"])
def test_it_is_the_client_s_own_error_in_each_protocol(tmp_path: Path, protocol: str) -> None:
    write(tmp_path, ROWS)
    with (
        serving(tmp_path, f"{protocol}+tcp://127.0.0.1:0") as served,
        pytest.raises(LocalError, match=f"position 31, because the log ends at {ROWS}"),
    ):
        RemoteCoordinator(served.url).commit(SOURCE, "evil", 31, query=None)


@pytest.mark.parametrize("position", [-1, True, 5.0, 1e300, "5", None, [5]], ids=str)
def test_a_position_is_a_whole_number(tmp_path: Path, position: object) -> None:
    write(tmp_path, ROWS)
    with serving(tmp_path) as served:
        for more in ({}, {"retain_bytes": 0}):
            asked = {"source": SOURCE, "cursor": "evil", "position": position, **more}
            with pytest.raises(LocalError, match=r"whole number|not a request"):
                ask(served, "commit", asked, int)
        with pytest.raises(LocalError, match="not a request"):
            ask(served, "commit", {"source": SOURCE, "cursor": "a", "position": 5, "retain_bytes": position or -1}, int)
    opens(tmp_path)


def test_a_query_s_name_that_could_not_be_read_again_is_refused(tmp_path: Path) -> None:
    write(tmp_path, ROWS)
    with serving(tmp_path) as served:
        there = RemoteCoordinator(served.url)
        for query in ("q" * 5_000, "\x1b[2J", "", "../q"):
            with pytest.raises(LocalError, match="cannot name a query"):
                there.commit(SOURCE, "evil", 5, query=query)
    opens(tmp_path)


@pytest.mark.parametrize("name", ["/dev/zero", "../_log.json", "../../etc/passwd", "", "a" * 200, "\x1b[2J", "a@b@c"])
def test_names_lead_nowhere_else(tmp_path: Path, name: str) -> None:
    write(tmp_path, ROWS)
    with serving(tmp_path) as served:
        there = RemoteCoordinator(served.url)
        for attempt in (
            lambda: there.holder(name),
            lambda: there.hold(name),
            lambda: there.commit(SOURCE, name, 5, query=None),
            lambda: there.drop(SOURCE, name),
            lambda: there.cursors(name),
        ):
            with pytest.raises(LocalError, match="cannot name a"):
                attempt()
    opens(tmp_path)


def loss(**fields: Any) -> dict[str, Any]:
    """Return a loss as a client may send it."""
    sound = {"position": 20, "time": NOON, "reason": "damaged", "previous": NOON, "lost": (15, 20), "query": "q"}
    return sound | {"number": 0} | fields


@pytest.mark.parametrize(
    "fields",
    [
        # All readers would skip it.
        {"query": None},
        {"query": "\x1b[2J"},
        {"query": "q" * 5_000},
        {"lost": None},
        {"lost": (15, 31), "position": 31},
        {"lost": (0, 10**6), "position": 10**6},
        {"lost": (0, 2**63), "position": 2**63},
        {"lost": (20, 15), "position": 15},
        {"lost": (-1, 20)},
        {"position": 25},
        {"position": -1},
        {"position": 2**64},
        # The file of gaps could not be read again.
        {"time": datetime(1969, 1, 1, tzinfo=UTC)},
        {"time": datetime(2026, 1, 1)},
        {"previous": datetime(1969, 1, 1, tzinfo=UTC)},
    ],
    ids=str,
)
def test_losses_are_those_of_a_query_and_of_the_log_s_rows(tmp_path: Path, fields: dict[str, Any]) -> None:
    folder = write(tmp_path, ROWS)
    with serving(tmp_path) as served:
        with pytest.raises(LocalError, match=r"lost|loss|query|range"):
            ask(served, "record", {"source": SOURCE, "losses": [loss(), loss(**fields)]})
        assert gaps.load(folder) == []
    opens(tmp_path)


def test_a_loss_cannot_harm_the_file_of_gaps(tmp_path: Path) -> None:
    folder = write(tmp_path, ROWS)
    with serving(tmp_path) as served:
        for _ in range(2):
            ask(served, "record", {"source": SOURCE, "losses": [loss(number=2**63 - 1, reason="x" * 100_000)]})
    (found,) = gaps.load(folder)
    assert (found.lost, found.query, len(found.reason)) == ((15, 20), "q", 1_000)
    gaps.add(folder, [Gap(25, NOON, "later", lost=(24, 25))])
    later = gaps.load(folder)[1]
    assert 0 < found.number < later.number < 2**62


def test_queries_skip_only_so_many_losses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weirpool.journal.coordinator.MAX_SKIPPED", 3)
    write(tmp_path, ROWS)
    here = FolderCoordinator(str(tmp_path))
    found = [Gap(at, NOON, "damaged", lost=(at - 1, at), query="q") for at in range(1, 6)]
    here.record(SOURCE, found[:3])
    here.record(SOURCE, found[:3])
    with pytest.raises(JournalError, match=r"queries have skipped 3 losses, .*repair --accept-loss"):
        here.record(SOURCE, found[2:])
    assert len(here.recorded(SOURCE)) == 3


@pytest.mark.parametrize(
    "owner",
    [
        {"host": "\x1b[2J"},
        {"host": "h" * 1_000},
        {"pid": -1},
        {"pid": 2**70},
        {"parent": -1},
        {"since": datetime(2026, 1, 1)},
    ],
    ids=str,
)
def test_what_a_client_says_of_itself_is_checked(tmp_path: Path, owner: dict[str, Any]) -> None:
    # Others are shown it.
    sound = {"pid": 5, "host": "here", "since": NOON, "parent": 4}
    with (
        serving(tmp_path) as served,
        pytest.raises(LocalError, match=r"the host of a process|a process has a number"),
    ):
        ask_stream(served, "hold", {"name": "a", "owner": sound | owner})
    assert not (tmp_path / "_readers").exists()


def ask_stream(served: Served, name: str, question: object) -> None:
    """Open a stream, and wait for its first item."""
    from weirpool.serving.links import links

    async def first(peer: Any) -> None:
        async with peer.stream(f"weirpool.journal.{name}", msgspec.json.encode(question), credit=1) as stream:
            await anext(aiter(stream))

    links().run(links().ask(served.url, first))


def test_a_client_holds_only_so_many_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "MAX_HOLDS", 6)
    with serving(tmp_path) as served:
        there = RemoteCoordinator(served.url)
        held = [there.hold(name) for name in ("a", "b", "c")]
        with pytest.raises(JournalError, match="this client has 3 of 6 names that are held here"):
            there.hold("d")
        for each in held:
            assert each is not None
            each.close()
        # No file of a name stays.
        until(lambda: not list((tmp_path / "_readers").iterdir()))
        again = there.hold("d")
        assert again is not None
        again.close()


@pytest.mark.parametrize(
    "span", [(-5, 10), (-5, -5), (2**63, 2**63), (10**400, 10**400), (5, 3), (True, 5), (0, 5.0)], ids=str
)
def test_a_range_is_one(tmp_path: Path, span: tuple[Any, Any]) -> None:
    write(tmp_path, ROWS)
    uuid = Journal(tmp_path).reader(SOURCE).uuid
    with serving(tmp_path) as served, pytest.raises(LocalError, match=r"not a request|there is no range"):
        ask_stream(served, "read", {"source": SOURCE, "uuid": uuid, "first": span[0], "end": span[1]})


NUMBER = st.one_of(
    st.none(), st.booleans(), st.floats(), st.text(max_size=3), st.integers(),
    st.sampled_from([0, 5, ROWS, ROWS + 1, -1, 2**31, 2**62, 2**62 + 1, 2**63, 2**64, 10**400]),
)  # fmt: skip
QUESTIONS = st.one_of(
    st.tuples(st.just("describe"), st.fixed_dictionaries({}, optional={
        "segments": NUMBER, "locate": NUMBER, "gaps": st.tuples(NUMBER, NUMBER),
        "damage": st.tuples(NUMBER, NUMBER, st.booleans()), "split": st.tuples(NUMBER, NUMBER, NUMBER, NUMBER),
    })),
    st.tuples(st.just("commit"), st.fixed_dictionaries(
        {"cursor": st.text(max_size=3), "position": NUMBER}, optional={"query": NUMBER, "retain_bytes": NUMBER},
    )),
    st.tuples(st.just("record"), st.fixed_dictionaries({"losses": st.lists(st.fixed_dictionaries({
        "position": NUMBER, "time": st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00", 5]),
        "reason": st.text(max_size=3), "lost": st.tuples(NUMBER, NUMBER), "query": st.sampled_from([None, "q", ""]),
        "number": NUMBER,
    }), max_size=2)})),
    st.tuples(st.just("drop"), st.fixed_dictionaries({"reader": st.text(max_size=3)})),
    st.tuples(st.just("readers"), st.just({})),
    st.tuples(st.just("losses"), st.just({})),
)  # fmt: skip


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Served]]:
    path = tmp_path_factory.mktemp("shared")
    write(path, *[10] * 3)
    with serving(path) as found:
        yield path, found


@settings(max_examples=300, deadline=None)
@given(question=QUESTIONS)
def test_whatever_a_client_asks_is_answered_or_refused(
    shared: tuple[Path, Served], question: tuple[str, dict[str, Any]]
) -> None:
    path, served = shared
    name, fields = question
    try:
        ask(served, name, {"source": SOURCE} | fields, Any)
    except LocalError as error:
        assert "failed" not in str(error)
    except JournalError as error:
        # An error that nobody has mapped is told as that of a handler.
        assert type(error) is not JournalError, error
    JournalWriter.open(path, SOURCE, fsync=False).close()
    assert ask(served, "describe", Describe(source=SOURCE), Any)["end"] == ROWS
