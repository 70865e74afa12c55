from __future__ import annotations

from inspect import signature

from weirpool.dumps import Dump, FrameReader
from weirpool.protocols import VERSIONS, dump_of


def test_readers_of_all_versions_have_the_methods_of_the_interface() -> None:
    for version in VERSIONS:
        dump = dump_of(version)
        reader = dump.reader("", False, False)
        expected = list(signature(FrameReader.lines).parameters)[1:]
        assert list(signature(reader.lines).parameters) == expected
        assert list(signature(dump.frames).parameters) == list(signature(Dump.frames).parameters)[1:]
