"""Texts that a shell, a program, a page or a terminal takes for more than a text, and descriptions made of them."""

from __future__ import annotations

from typing import Any

__all__ = ["HOSTILE", "filled", "named"]

HOSTILE = [
    "a; touch pwned #",
    "$(touch pwned)",
    "`touch pwned`",
    "a\x03\ntouch pwned\n",
    "a\x1b[201~\x03\ntouch pwned\n",
    "\x1b]52;c;cm0gLXJmIH4K\x07\x1b[8m",
    "\x1b]0;title\x07\x1b[2J\x1b[1;31m",
    "\x9b31m\x90q\x9c",
    "\u202eabc\u2066\u2028x\u2029",
    "<img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script><b>",
    "[bold red]x[/][link=http://x]y[/link]",
    "'; import os; os.system('touch pwned'); '",
    '"""\nimport os\nos.system("touch pwned")\n"""',
    "*/ process.exit(7) /*",
    "${process.exit(7)}`",
    "\\",
    "'\"\\`$",
    "a\tb\r\nc",
    "{{x}}%s%n{0}",
    "__proto__",
    "constructor",
    "</script>",
    "\r\nweirpool: ok",
    "a\x7fb\x08\x08",
    "=cmd|'/c calc'!A0",
    "\u200e\u200f\u061c",
    "\U000e0041\ufeff",
]


def filled(text: str) -> dict[str, Any]:
    """Return a description with a text in each place that may have any."""
    schema: dict[str, Any] = {
        "type": "object", "title": text, "description": text, "required": [text, "form"],
        "properties": {
            text: {"type": "string", "default": text, "description": text, "pattern": text, "format": text},
            "form": {"enum": [text, "b"], "description": text}, "one": {"const": text}, "kind": {"type": text},
            "any": {"anyOf": [{"$ref": f"#/$defs/{text}"}, {"title": text, "type": "null"}], "default": text},
            "more": {"type": "array", "items": {"const": text}, "examples": [[text]]},
            "bytes": {"type": "string", "contentEncoding": text},
        },
    }  # fmt: skip
    error = {"code": "BAD", "name": "Bad", "description": text, "extras": schema}
    routes = [
        {"route": route, "kind": kind, "description": text, "request": schema, "response": schema, "errors": [error]}
        | ({"items": schema} if kind in ("upload", "channel") else {})
        for route, kind in ((f"a.{text}", "call"), (text, "stream"), (f"{text}.{{{text}}}", "channel"))
    ]
    routes.append({"route": "error", "kind": "call"})
    return {"version": 1, "software": text, "routes": routes, "$defs": {text: schema}}


def named(text: str) -> list[dict[str, Any]]:
    """Return descriptions with a text in a place that has a type: each of them is to be refused, if it has another."""

    def of(**fields: Any) -> dict[str, Any]:
        return {"version": 1, "routes": [{"route": "a", "kind": "call"} | fields]}

    return [of(kind=text), of(encodings=[text]), of(errors=[{"code": text}]), of(errors=[{"code": "A", "name": text}])]
