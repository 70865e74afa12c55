from __future__ import annotations

import inspect
from pathlib import Path

import pyarrow.fs
import pytest

from weirpool.objects.folder import FolderStore
from weirpool.objects.foreign import ForeignStore
from weirpool.objects.ports import Store
from weirpool.objects.remote import RemoteStore

NAMES = ["create", "put", "get", "list", "folders", "delete"]


@pytest.mark.parametrize("kind", [FolderStore, RemoteStore, ForeignStore])
def test_every_store_has_the_interface(kind: type) -> None:
    for name in NAMES:
        assert inspect.signature(getattr(kind, name)) == inspect.signature(getattr(Store, name)), name


def test_stores_say_whether_writes_can_be_conditional(tmp_path: Path) -> None:
    assert FolderStore(tmp_path).conditional
    assert not ForeignStore("x://y", pyarrow.fs.LocalFileSystem(), str(tmp_path)).conditional
