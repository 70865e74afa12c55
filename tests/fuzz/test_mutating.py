from __future__ import annotations

from random import Random

from fuzz.mutating import MAX_INPUT_BYTES, mutated


def test_mutations_are_repeatable() -> None:
    made = [[mutated(b"0123456789", [b"other"], [b"word"], Random(seed)) for seed in range(50)] for _ in range(2)]
    assert made[0] == made[1]
    assert len(set(made[0])) > 40


def test_words_and_parts_of_other_inputs_appear() -> None:
    made = [mutated(b"0123456789", [b"another"], [b"word"], Random(seed)) for seed in range(300)]
    assert any(b"word" in data for data in made)
    assert any(b"ther" in data for data in made)


def test_inputs_stay_short() -> None:
    data, rng = b"x" * MAX_INPUT_BYTES, Random(1)
    for _ in range(200):
        data = mutated(data, [data], [], rng)
        assert len(data) <= MAX_INPUT_BYTES


def test_empty_input_grows() -> None:
    assert any(mutated(b"", [], [], Random(seed)) for seed in range(20))
