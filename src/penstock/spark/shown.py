"""Errors as Spark shows them to its users: our sentence at once, and no traceback before it.

A worker of PySpark sends the text of an exception to the JVM, which puts it behind words of its own. Twenty lines of
Python between these and the sentence that says what to do help nobody. PySpark has a switch for that, in the
environment, which it looks at when it has caught the exception; the worker ends then.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..errors import PenstockError

__all__ = ["plain_errors"]

logger = logging.getLogger("penstock.spark")

HIDE: Final = "SPARK_HIDE_TRACEBACK"
WORKER: Final = "PYTHON_WORKER_FACTORY_"
"""How names begin that are in the environment of PySpark's workers only."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Let errors of ours end a worker of PySpark without a traceback; that is in the log at the level DEBUG."""
    try:
        yield
    except PenstockError:
        logger.debug("this ends a worker of Spark", exc_info=True)
        if any(name.startswith(WORKER) for name in os.environ):
            os.environ.setdefault(HIDE, "1")
        raise
