from __future__ import annotations

import pytest

from weirpool import TraceContext
from weirpool.cli.request_options import WORDS, b3, trace_context
from weirpool.errors import LocalError

TRACE, SPAN, PARENT = "80f198ee56343ba864fe8b2a57d3eff7", "e457b5a2e4d86bd1", "05e3ac9a4f6e3b90"


@pytest.mark.parametrize("word", WORDS)
def test_new_traces_differ_and_have_their_sampling_state(word: str) -> None:
    first, second = trace_context(word), trace_context(word)
    assert first.trace_id and first.span_id and first.trace_id != second.trace_id
    assert (first.sampled, first.debug) == {
        "sampled": (True, False),
        "unsampled": (False, False),
        "debug": (None, True),
        "undecided": (None, False),
    }[word]


@pytest.mark.parametrize(
    "text", [f"{TRACE}-{SPAN}{rest}" for rest in ("", "-1", "-0", "-d", f"-1-{PARENT}")] + [f"{TRACE[:16]}-{SPAN}-0"]
)
def test_b3_is_read_and_written(text: str) -> None:
    assert b3(trace_context(text)) == text


def test_traceparent() -> None:
    assert trace_context(f"00-{TRACE}-{SPAN}-01") == TraceContext(
        int(TRACE, 16), int(SPAN, 16), sampled=True, wide=True
    )


@pytest.mark.parametrize("text", ["", "yes", f"{TRACE}-", f"{TRACE}-{SPAN}-2", f"01-{TRACE}-{SPAN}-01"])
def test_invalid_trace_is_an_error(text: str) -> None:
    with pytest.raises(LocalError, match="sampled, unsampled"):
        trace_context(text)


def test_trace_of_zeros_is_rejected() -> None:
    with pytest.raises(LocalError, match="must not be 0"):
        trace_context(f"00-{'0' * 32}-{SPAN}-01")
