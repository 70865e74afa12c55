"""The seeds and the corpus of every target, on both builds, without sanitizers."""

from __future__ import annotations

import pytest
from fuzz import corpora
from fuzz.mutating import MAX_INPUT_BYTES
from fuzz.targets import load, names

from tests.builds import Build

TARGETS = pytest.mark.parametrize("name", names())


@TARGETS
def test_builds_agree_on_known_inputs(builds: dict[str, Build], name: str) -> None:
    target = load(name, builds)
    inputs = [*target.seeds(), *corpora.read(name)]
    assert inputs
    for data in inputs:
        target.check(data)


@TARGETS
def test_corpus_is_small(name: str) -> None:
    inputs = corpora.read(name)
    assert sum(map(len, inputs)) <= corpora.MAX_CORPUS_BYTES
    assert all(len(data) <= MAX_INPUT_BYTES for data in inputs)
    assert inputs == sorted(set(inputs))


def test_every_corpus_has_a_target() -> None:
    assert {path.stem for path in corpora.FOLDER.glob("*.txt")} <= set(names())
