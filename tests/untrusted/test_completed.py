"""Completion in interactive shells, with routes and contexts of hostile names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from weirpool.cli.values import ASKED, completable

from .completing import completing
from .terminal import SHELLS

URL = "rsocket+tcp://localhost:7878"
ATTACKS = [
    "1$(touch${IFS}pwned)",
    "2\\$(touch${IFS}pwned)",
    "3`touch${IFS}pwned`",
    "4;touch${IFS}pwned",
    "5\x03touch pwned\r",
]
"""Of these, bash ran the first one when the line was entered, and zsh the second one when it was completed."""
OTHERS = [
    "e\\\\\\$(touch pwned)", 'f"; touch pwned #', "g'; touch pwned; '", "h\ntouch pwned\n", "j\x1b[201~", "k*", "l~",
    "m!!", "n{a,b}", "o #x", "p|touch pwned", "q)); touch pwned; ((", "r:::touch pwned", "s\ttouch", "t=x", "u:x",
    "v\\", "x%y", "w<(touch pwned)", "y&", "=zsh", "~z", "#z", "-z", "{z", "{z}}", "{}", "A\u202eB", "B\u2028C",
    "\u00a0", "$PWD", "", "a,b", "(touch pwned)", "[a-z]", "?", "a\u200bb", "a\x7f", "\u0301$x", "a\n", "'", '"',
]  # fmt: skip
PLAIN = ["Rplain.live_1", "S{symbol}.x", "Th\u00e9", "Ud@x", "Vg/b+c-d", "@z"]


# THREATS 109
@pytest.mark.parametrize("name", SHELLS)
def test_a_completed_route_is_one_word(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with completing(name, tmp_path, URL, [*ATTACKS, *OTHERS, *PLAIN], monkeypatch) as typing:
        for route in PLAIN:
            assert typing.words(f"weirpool call {URL} {route[0]}") == ["call", URL, route]
        for route in ATTACKS:
            assert typing.words(f"weirpool call {URL} {route[0]}") == ["call", URL, route[0]]
        # All together, with what they have in common: nothing.
        assert typing.words(f"weirpool call {URL} ")[:2] == ["call", URL]
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("name", SHELLS)
def test_a_completed_context_is_one_word(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contexts = {each: {"url": URL} for each in (*ATTACKS, *OTHERS, "Rplain")}
    (tmp_path / "weirpool").mkdir()
    (tmp_path / "weirpool" / "contexts.json").write_text(json.dumps({"contexts": contexts}))
    with completing(name, tmp_path, URL, [], monkeypatch) as typing:
        assert typing.words("weirpool call @R") == ["call", "@Rplain"]
        assert typing.words("weirpool context use R") == ["context", "use", "Rplain"]
        for context in ATTACKS[:2]:
            assert typing.words(f"weirpool call @{context[0]}") == ["call", f"@{context[0]}"]
            assert typing.words(f"weirpool context use {context[0]}") == ["context", "use", context[0]]
    assert not (tmp_path / "pwned").exists()


def test_only_plain_words_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completable([*ATTACKS, *OTHERS, *PLAIN]) == PLAIN
    monkeypatch.setenv(ASKED, "complete_powershell")
    assert completable([*ATTACKS, *OTHERS, *PLAIN]) == ["Rplain.live_1", "Th\u00e9", "Vg/b+c-d"]
