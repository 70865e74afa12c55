"""The runtime of clients for rsocket-js; `python -m interop` runs programs against a server with it."""

from __future__ import annotations

import re

from weirpool.schema.rsocket_js_runtime import RUNTIME
from weirpool.schema.typescript_types import RESERVED_NAMES


def test_its_public_names_are_reserved() -> None:
    source = "\n".join(line for block in RUNTIME for line in block)
    names = set(
        re.findall(r"^export (?:abstract )?(?:class|interface|type|const|function) (\w+)", source, re.MULTILINE)
    )
    assert names == {"setup", "Items", "Options", "StreamOptions", "TypedError", "Subscription"}
    assert names | {"Requester", "Outgoing", "Sink", "ErrorClass"} <= RESERVED_NAMES
