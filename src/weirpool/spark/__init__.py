"""Spark source and sink. May import the top files and `journal`; `aio` only inside functions.

Programs call these functions; everything else is the format "weirpool":

* :func:`history` returns all rows of a journal as a DataFrame, at the speed of Parquet.
* :func:`publish` serves a table or the result of a query to the clients of a service.
* :func:`typed_rows` decodes the items of a DataFrame with a journal's columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .sealed_history import history
    from .tables import publish
    from .typed_frames import typed_rows

__all__ = ["history", "publish", "typed_rows"]

# Imported on first use: the workers of Spark import this package, and need none of them.
__getattr__ = lazily(__name__, {"history": "sealed_history", "publish": "tables", "typed_rows": "typed_frames"})
