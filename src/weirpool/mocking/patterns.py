"""Texts that match the regular expressions of schemas."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from ..schema.expressions import MAX_CHARACTERS, parsed

__all__ = ["Unmatched", "text_of"]

MAX_LENGTH: Final = 10_000
MAX_STEPS: Final = 10_000
"""Parts of one text, which may be empty."""
MORE: Final = 4
"""Repetitions beyond the least."""
ALPHABET: Final = string.ascii_letters + string.digits + "-_. !#%&*+,/:;=?@"
CLASSES: Final = {
    "CATEGORY_DIGIT": string.digits,
    "CATEGORY_NOT_DIGIT": string.ascii_letters,
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_SPACE": string.ascii_letters + string.digits,
    "CATEGORY_WORD": string.ascii_letters + string.digits + "_",
    "CATEGORY_NOT_WORD": "-. ",
}
SURROGATES: Final = range(0xD800, 0xE000)


class Unmatched(Exception):
    """No text can be made up: the expression is not valid, or has parts such as look-around."""


def text_of(pattern: str, random: Random, spend: Callable[[int], None] = lambda steps: None) -> str:
    """Return a short text that matches a regular expression.

    The text matches by the way it is made. It is not compared with the expression, because that may take for ever.

    Args:
        pattern: The expression.
        random: Chooses the text.
        spend: Is told how many steps it took, also if there is no text.

    Raises:
        Unmatched: No text can be made up.

    """
    maker = _Maker(random)
    try:
        # Libraries that make such texts parse it in the same way; theirs differ for the same seed.
        return maker.sequence(parsed(pattern))
    except ValueError as error:
        raise Unmatched(str(error)) from error
    finally:
        spend(min(len(pattern), MAX_CHARACTERS) + maker.steps)


class _Maker:
    """Makes the parts of one text, in a number of `steps`."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._groups: dict[int, str] = {}
        self._length = 0
        self.steps = 0

    def sequence(self, parts: Sequence[tuple[Any, Any]]) -> str:
        """Return a text for parts that follow each other."""
        self.steps += 1 + len(parts)
        if self.steps > MAX_STEPS:
            raise Unmatched(f"its texts have more than {MAX_STEPS} parts")
        return "".join([self._part(str(operation), value) for operation, value in parts])

    def _part(self, operation: str, value: Any) -> str:
        match operation:
            case "LITERAL":
                return self._counted(chr(value))
            case "NOT_LITERAL":
                return self._other({chr(value)})
            case "ANY":
                return self._other(set())
            case "IN":
                return self._one_of(value)
            case "BRANCH":
                return self.sequence(self._random.choice(value[1]))
            case "SUBPATTERN":
                return self._group(value[0], value[-1])
            case "ATOMIC_GROUP":
                return self.sequence(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, repeated = value
                count = self._random.randint(least, min(int(most), least + MORE))
                return "".join([self.sequence(repeated) for _ in range(count)])
            case "GROUPREF":
                return self._counted(self._groups.get(value, ""))
            case "AT":
                return ""
        raise Unmatched(f"{operation} is not made up")

    def _group(self, number: int | None, parts: Any) -> str:
        text = self.sequence(parts)
        if number is not None:
            self._groups[number] = text
        return text

    def _one_of(self, choices: Sequence[tuple[Any, Any]]) -> str:
        """Return a character of a class such as ``[^a-z_]``."""
        if str(choices[0][0]) == "NEGATE":
            return self._other({each for choice in choices[1:] for each in ALPHABET if _includes(choice, each)})
        operation, value = self._random.choice(choices)
        match str(operation):
            case "LITERAL":
                return self._counted(chr(value))
            case "RANGE":
                return self._counted(self._between(*value))
        return self._counted(self._random.choice(CLASSES[str(value)]))

    def _between(self, first: int, last: int) -> str:
        usual = [each for each in ALPHABET if first <= ord(each) <= last]
        code = self._random.randint(first, last)
        if not usual and code in SURROGATES:
            raise Unmatched("a half of a surrogate pair is no text")
        return self._random.choice(usual) if usual else chr(code)

    def _other(self, excluded: set[str]) -> str:
        # Letters, if they may be there.
        usual = [each for each in string.ascii_lowercase if each not in excluded]
        choices = usual or [each for each in ALPHABET if each not in excluded]
        if not choices:
            raise Unmatched("it excludes all usual characters")
        return self._counted(self._random.choice(choices))

    def _counted(self, text: str) -> str:
        self._length += len(text)
        if self._length > MAX_LENGTH:
            raise Unmatched(f"its texts are longer than {MAX_LENGTH}")
        return text


def _includes(choice: tuple[Any, Any], character: str) -> bool:
    """Return whether a part of a class includes a character of the alphabet."""
    operation, value = choice
    match str(operation):
        case "LITERAL":
            return character == chr(value)
        case "RANGE":
            return bool(value[0] <= ord(character) <= value[1])
    name = str(value)
    return (character in CLASSES[name.replace("NOT_", "")]) is not ("NOT_" in name)
