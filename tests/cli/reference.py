"""The page of the command line, as its tests read it: what it says of each verb.

What a section says holds for each verb of its heading, with these exceptions:

* A table of "option of `VERB`" holds for this verb, and so does an item of a list that begins with `VERB`. A row whose
  text begins with verbs, as in "`stream`, `channel`: stop after N items", holds for these.
* A subsection holds for verbs that link to it. A sentence that begins with verbs, and says that they have "the options
  of" other sections, links them to those; without verbs, it links all of its section.
* A block of `text` has a line for each verb: how it is called, with its arguments in their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGE", "Reference"]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
Verb = tuple[str, ...]
WORDS = re.compile(r"`([\w-]+)`")
SUBJECT = re.compile(r"(?:`[\w -]+`(?:, | and )?)+")
LINK = re.compile(r"\]\(#([\w-]+)\)")


@dataclass
class Section:
    """A section of the page, or a subsection."""

    heading: str
    body: str

    @property
    def anchor(self) -> str:
        """What links to it have."""
        return re.sub(r"[^\w -]", "", self.heading.lower()).replace(" ", "-")


class Reference:
    """What the page says of each verb.

    Args:
        text: The page.
        verbs: All verbs, with those of groups as two words.

    """

    def __init__(self, text: str, verbs: list[Verb]) -> None:
        self._verbs = verbs
        _, *parts = re.split(r"^(##+) (.*)\n", text, flags=re.MULTILINE)
        levels = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        self._sections = [(level, Section(heading, body)) for level, heading, body in levels]

    def of(self, verb: Verb) -> str:
        """Return what the page says of a verb."""
        own = self._section(verb)
        linked = {anchor for sentence in self._linking(own, verb) for anchor in LINK.findall(sentence)}
        others = (each for _, each in self._sections if each.anchor in linked)
        return "\n".join([*self._lines(own, verb), *(line for each in others for line in self._lines(each, verb))])

    def calls(self, verb: Verb) -> list[str]:
        """Return how a verb is called, according to the page."""
        blocks = re.findall(r"^```text\n(.*?)^```", self._section(verb).body, re.MULTILINE | re.DOTALL)
        lines = [" ".join(line.split()) for block in blocks for line in block.splitlines()]
        return [line for line in lines if f"{line} ".startswith(f"weirpool {' '.join(verb)} ")]

    def _section(self, verb: Verb) -> Section:
        return next(each for level, each in self._sections if level == "##" and verb[0] in each.heading.split(", "))

    def _linking(self, section: Section, verb: Verb) -> Iterator[str]:
        """Yield the sentences that give a verb the options of other sections."""
        for sentence in re.split(r"(?<=\.)\s+", section.body):
            if "the options of" in " ".join(sentence.split()):
                subject = SUBJECT.match(sentence)
                if subject is None or verb[-1] in WORDS.findall(subject[0]):
                    yield sentence

    def _lines(self, section: Section, verb: Verb) -> Iterator[str]:
        """Yield the lines of a section that hold for a verb."""
        known = {each[-1] for each in self._verbs if len(each) == 1 or each[0] == verb[0]}
        holds = True
        for line in re.sub(r"^```.*?^```", "", section.body, flags=re.MULTILINE | re.DOTALL).splitlines():
            if header := re.match(r"\| option(?: of `(\w+)`)? \|", line):
                holds = header[1] in (None, verb[-1])
                continue
            if line.startswith("|"):
                subject = re.match(rf"\| .* \| ({SUBJECT.pattern}): ", line)
                named = known.intersection(WORDS.findall(subject[1]) if subject else ())
                if named and verb[-1] not in named:
                    continue
            elif item := re.match(r"\* `(\w+)`", line):
                holds = item[1] == verb[-1]
            elif not line.startswith(" "):
                holds = True
            if holds:
                yield line
