from __future__ import annotations

from weirpool.cli.parser import command


def test_verbs_with_a_server_share_its_arguments() -> None:
    verbs = command().commands
    for verb in ("call", "stream", "describe", "bench", "ui"):
        url = next(each for each in verbs[verb].params if each.name == "url")
        assert "@NAME" in url.help and url.is_eager and url.required
    for verb in ("call", "stream", "fire", "upload", "channel"):
        route = next(each for each in verbs[verb].params if each.name == "route")
        assert route.help == "The name of a handler."
