from __future__ import annotations

import pytest

from weirpool import LocalError
from weirpool.spark.given import Given, Plain, as_count, as_flag, as_seconds, as_size, as_text, as_url, one_of

PLAIN: Plain = {"rows": ("maxRows", as_count), "quick": ("quick", as_flag)}


def test_names_are_of_any_case_and_fields_are_those_that_were_passed() -> None:
    given = Given({"MAXROWS": "7", "url": "rsocket+tcp://h:1"}, "url", PLAIN)
    assert given.fields(PLAIN) == {"rows": 7}
    assert given.get("url", as_url, None) == "rsocket+tcp://h:1"
    assert given.get("quick", as_flag, True) is True


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    with pytest.raises(LocalError, match='did you mean "maxRows"'):
        Given({"maxrow": "7"}, "url", PLAIN)
    with pytest.raises(LocalError, match="the options are maxRows, quick, url"):
        Given({"zzz": "7"}, "url", PLAIN)


def test_a_bad_value_is_refused_with_its_name() -> None:
    with pytest.raises(LocalError, match="option \"maxRows\" is '0'; it must be a whole number"):
        Given({"maxrows": "0"}, "", PLAIN).fields(PLAIN)


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(LocalError, match='"quick" is not valid here; the options are maxRows'):
        Given({"quick": "true"}, "", PLAIN).only(("maxRows",), "here")


def test_values() -> None:
    assert (as_seconds("5m"), as_size("2k"), as_flag("TRUE"), one_of("a", "a", "b")) == (300.0, 2048, True, "a")
    for parse in (as_text, as_count, as_size, as_seconds):
        with pytest.raises(ValueError, match="it must"):
            parse(" ")
