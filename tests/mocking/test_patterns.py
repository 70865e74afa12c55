from __future__ import annotations

import re
from random import Random

import pytest

from weirpool.mocking.patterns import Unmatched, text_of

PATTERNS = [
    "^[A-Z]{1,5}$",
    "^[A-Z]{3}-[0-9]{4}(\\.[a-z]+)?$",
    r"^\d{3}-\d{2}-\d{4}$",
    r"^\w+@\w+\.(com|org)$",
    r"^[^a-z]{3}$",
    r"^[^\d\s]+$",
    r"^[^\W]+$",
    r"^\S+\s\D$",
    r"^\W[^x].$",
    "^(a|b|cd)*?$",
    r"^(['\"])x+\1$",
    r"^(?P<year>\d{4})-(?P=year)$",
    "^[\u0430-\u044f]{2,}$",
    "^(?:0|[1-9][0-9]*)$",
    "^(?>ab)++$",
    "",
    "x",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_texts_match(pattern: str) -> None:
    texts = [text_of(pattern, Random(seed)) for seed in range(200)]
    assert [text for text in texts if re.search(pattern, text) is None] == []
    assert texts == [text_of(pattern, Random(seed)) for seed in range(200)]


@pytest.mark.parametrize(
    "pattern", ["(", "(?=a)b", "(?<!a)b", "((a{1000}){1000}){1000}", r"[\ud800-\udfff]", r"[^\w\W]", "(a)?(?(1)b|c)"]
)
def test_no_text_is_made_of_what_cannot_be_made_up(pattern: str) -> None:
    with pytest.raises(Unmatched):
        text_of(pattern, Random(1))


ENDLESS = ["(?:){2000000000}", "(?:(?:){60000}){60000}", "(?:^){99999}", "a" * 1_001, "(?a)(?u)"]


# THREATS 110
@pytest.mark.parametrize("pattern", ENDLESS)
def test_repetitions_of_nothing_end(pattern: str) -> None:
    spent: list[int] = []
    with pytest.raises(Unmatched):
        text_of(pattern, Random(1), spent.append)
    assert spent and spent[0] < 20_000
