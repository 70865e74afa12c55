from __future__ import annotations

import msgspec

from weirpool.feeds.status import Document, FeedState, FeedStatus, Lag, ReaderStatus, ServedStatus, readers_of


def status(name: str, state: FeedState = FeedState.LIVE, **readers: Lag) -> FeedStatus:
    return FeedStatus(name=name, url="u", route="r", journal="j", source=name, state=state, readers=readers)


def test_readers_are_summed_over_feeds() -> None:
    feeds = [
        status("a", report=Lag(5, 10, 3.0)),
        status("b", report=Lag(7, 20, 1.0), alerts=Lag(0, 1, 9.0), lost=Lag(0, 1, None)),
        status("c"),
    ]
    assert readers_of(feeds) == [
        ReaderStatus("alerts", 1, 1, 9.0), ReaderStatus("lost", 1, 1, None), ReaderStatus("report", 2, 30, 3.0),
    ]  # fmt: skip


def test_document_counts_states_in_their_order() -> None:
    feeds = [status("a", FeedState.REFUSED), status("b"), status("c")]
    document = Document.of(feeds, time=1.0, healthy=False, ready=True)
    assert list(document.states.items()) == [("live", 2), ("refused", 1)]
    assert (document.healthy, document.ready) == (False, False)


def test_feed_that_was_never_valid_is_refused() -> None:
    refused = FeedStatus.refused("a", "why")
    assert (refused.state, refused.reason, refused.problem) == (FeedState.REFUSED, "why", "why")


def test_document_of_an_older_collector_has_no_served_journals() -> None:
    document = Document.of([], time=1.0, healthy=True, ready=True, served=[ServedStatus("j", "/j", "u", 1)])
    shown = msgspec.json.decode(msgspec.json.encode(document))
    assert shown.pop("served") == [{"name": "j", "journal": "/j", "url": "u", "connections": 1}]
    assert msgspec.convert(shown, Document).served == []
