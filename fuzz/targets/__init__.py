"""The targets: one module for each decoder.

A module has `seeds()`, which yields inputs, and `outcome(build, data)`, which decodes one with a build and returns
something comparable. Optional are `judge(build, data, found)`, which compares the outcome with an independent decoder,
`WORDS`, byte strings that mean something to the decoder, and `LINES`, True if the decoder is not compiled. An
outcome never depends on time, randomness or addresses. Errors that are not Weirpool's are findings.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tests.builds import Build

__all__ = ["Difference", "Target", "load", "names"]


class Difference(Exception):
    """The builds, or a build and an independent decoder, disagree about an input."""


@dataclass(frozen=True)
class Target:
    """A decoder.

    Attributes:
        outcome: Decodes an input with one build.
        builds: The builds by name.
        seeds: Yields inputs to start from.
        judge: Compares an outcome with an independent decoder; raises Difference.
        words: Byte strings that mean something to the decoder.
        lines: Whether the decoder is not compiled, so that lines show its coverage.

    """

    outcome: Callable[[Build, bytes], object]
    builds: Mapping[str, Build]
    seeds: Callable[[], Iterable[bytes]] = tuple
    judge: Callable[[Build, bytes, Any], None] | None = None
    words: Sequence[bytes] = ()
    lines: bool = False

    def check(self, data: bytes) -> None:
        """Decode an input with all builds. Raises Difference, or an unexpected error of a decoder."""
        found = {name: self.outcome(build, data) for name, build in self.builds.items()}
        first, *others = found
        for other in others:
            if found[first] != found[other] and _text(found[first]) != _text(found[other]):
                raise Difference(f"the builds disagree:\n{first}: {found[first]!r}\n{other}: {found[other]!r}")
        if self.judge is not None:
            self.judge(self.builds[first], data, found[first])


def _text(found: object) -> str:
    """Return an outcome as text, without the addresses of objects that have no other text."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(found))


def names() -> list[str]:
    """Return the names of all targets."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str, builds: Mapping[str, Build]) -> Target:
    """Return a target."""
    module = import_module(f"{__name__}.{name}")
    return Target(
        module.outcome,
        builds,
        module.seeds,
        getattr(module, "judge", None),
        getattr(module, "WORDS", ()),
        getattr(module, "LINES", False),
    )
