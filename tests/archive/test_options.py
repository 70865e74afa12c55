from __future__ import annotations

import pytest

from weirpool.archive import SealOptions
from weirpool.errors import LocalError


def test_the_defaults_keep_everything_in_the_folder() -> None:
    options = SealOptions()
    assert (options.store, options.keep, options.keep_bytes, options.local_bytes) == (None, None, None, 0)


@pytest.mark.parametrize("name", ["target_bytes", "max_age", "local_bytes", "keep", "keep_bytes"])
def test_values_out_of_range_are_named(name: str) -> None:
    with pytest.raises(LocalError, match=f"{name} is -1"):
        SealOptions(**{name: -1})


def test_credentials_in_the_store_are_refused() -> None:
    with pytest.raises(LocalError, match="contains credentials"):
        SealOptions(store="s3://key:geheim@bucket/p")
