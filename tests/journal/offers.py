"""Whether a class offers a port."""

from __future__ import annotations

import inspect


def methods(port: type) -> list[str]:
    """Return the names of a port's methods."""
    return [name for name, value in vars(port).items() if inspect.isfunction(value) and not name.startswith("_")]


def check_offered(port: type, offered: type) -> None:
    """Check that a class has all methods of a port, with the same arguments and perhaps more."""
    assert methods(port)
    for name in methods(port):
        wanted, found = (inspect.signature(getattr(kind, name)).parameters for kind in (port, offered))
        assert list(found)[: len(wanted)] == list(wanted), name
