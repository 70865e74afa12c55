"""How Spark finds the format "penstock": it imports every top-level module that is named ``pyspark_…``.

If one of them raises, Spark gives up on all of them, those of other packages too. So this one never does.
"""

from __future__ import annotations

import logging

try:
    from penstock.spark import datasource
except Exception as error:
    logging.getLogger("penstock.spark").warning(
        "the format penstock is not available (%s: %s); install penstock[spark]", type(error).__name__, error
    )
else:
    DefaultSource = datasource.PenstockSource
