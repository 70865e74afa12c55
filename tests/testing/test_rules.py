from __future__ import annotations

from pathlib import Path

from weirpool.testing.rules import RULES, markdown

PAGE = Path(__file__).parent.parent.parent / "docs/reference/reactive-streams-rules.md"


def test_rules_are_complete_and_in_order() -> None:
    sections = {1: 11, 2: 13, 3: 17, 4: 2}
    assert list(RULES) == [f"{section}.{rule}" for section, last in sections.items() for rule in range(1, last + 1)]


def test_every_rule_is_checked_or_has_a_reason() -> None:
    for rule in RULES.values():
        assert (rule.side in ("publisher", "subscriber")) != bool(rule.why_not), rule


def test_the_page_shows_the_table() -> None:
    assert markdown() in PAGE.read_text()
