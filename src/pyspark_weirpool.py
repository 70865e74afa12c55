"""How Spark finds the format "weirpool": it imports every top-level module that is named ``pyspark_…``.

If one of them raises, Spark gives up on all of them, those of other packages too. So this one never does.
"""

from __future__ import annotations

import logging

try:
    from weirpool.spark import datasource
except Exception as error:
    logging.getLogger("weirpool.spark").warning(
        "the format weirpool is not available (%s: %s); install weirpool[spark]", type(error).__name__, error
    )
else:
    DefaultSource = datasource.WeirpoolSource
