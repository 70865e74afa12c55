"""Errors as Spark shows them to its users: Weirpool's message first, without a traceback.

A PySpark worker sends the text of an exception to the JVM, which shows it after its own text. A traceback would hide
the message, which says what to do. PySpark has an environment variable to omit tracebacks. It is read when an exception
was caught; the worker then ends.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..errors import WeirpoolError

__all__ = ["plain_errors"]

logger = logging.getLogger("weirpool.spark")

HIDE: Final = "SPARK_HIDE_TRACEBACK"
WORKER: Final = "PYTHON_WORKER_FACTORY_"
"""The prefix of names that exist only in the environment of PySpark's workers."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Let Weirpool's errors end a PySpark worker without a traceback; that is logged at level DEBUG."""
    try:
        yield
    except WeirpoolError:
        logger.debug("this error ends a Spark worker", exc_info=True)
        if any(name.startswith(WORKER) for name in os.environ):
            os.environ.setdefault(HIDE, "1")
        raise
