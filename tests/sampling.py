"""How much of a search laboratories do: a part of it, chosen by a seed that is printed, or the whole.

`WEIRPOOL_LABS_SEED` repeats a part, `WEIRPOOL_LABS=whole` makes it the whole.
"""

from __future__ import annotations

import os
import random
from typing import Final

__all__ = ["SEED", "WHOLE"]

WHOLE: Final = os.environ.get("WEIRPOOL_LABS") == "whole"
# Processes that this one starts use the same seed.
SEED: Final = int(os.environ.setdefault("WEIRPOOL_LABS_SEED", f"{random.randrange(1_000_000)}"))
