"""Option groups: dataclasses that are a single parameter of a verb."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

__all__ = ["grouped", "words_of"]


def grouped(verb: Callable[..., None]) -> Callable[..., None]:
    """Return `verb` with each dataclass parameter replaced by its fields, for the parser.

    The fields are annotated like parameters of verbs. Each call creates new instances of the dataclasses.
    """
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, type] = {}
    flat: list[Parameter] = []
    for parameter in signature(verb).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and is_dataclass(hint):
            groups[parameter.name] = hint
            flat += _parameters(hint)
        else:
            flat.append(parameter.replace(annotation=hint, kind=Parameter.KEYWORD_ONLY))

    def called(**values: Any) -> None:
        made = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        verb(**values, **made)

    called.__name__, called.__doc__ = verb.__name__, verb.__doc__
    called.__signature__ = Signature(flat)  # type: ignore[attr-defined]  # what inspect.signature looks for
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
    return called


def _parameters(group: type) -> Iterator[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name])


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return Parameter.empty if field.default is MISSING else field.default


def words_of(
    group: Any, *, skip: Collection[str] = (), shown: Callable[[str, Any], Any] = lambda name, value: value
) -> list[str]:
    """Return the options, as words of a command, that give a group the values that it has.

    Args:
        group: An instance of a dataclass of options; see `grouped`.
        skip: The names of fields to leave out.
        shown: Returns what to write for the value of a field, by its name.

    """
    hints = get_type_hints(type(group), include_extras=True)
    words: list[str] = []
    for field in fields(group):
        value = getattr(group, field.name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if field.name in skip or value == default:
            continue
        names = [decl for each in hints[field.name].__metadata__ for decl in getattr(each, "param_decls", None) or ()]
        name = names[0] if names else f"--{field.name.replace('_', '-')}"
        for each in value if isinstance(value, list) else [value]:
            words += [name] if each is True else [name, str(shown(field.name, each))]
    return words
