"""Several questions in one test: all are asked, and a failure names its case and question."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from tests.questions import Questions, of_each


def _questions() -> tuple[Questions, list[tuple[object, ...]]]:
    question, asked = Questions(), []

    @question(lambda case: case > 1, by=lambda case: [1, case])
    def _divided(case: int, by: int) -> None:
        asked.append((case, by))
        assert case // by != 1, "one"

    @question()
    def _raised(case: int) -> None:
        asked.append((case,))
        if case > 2:
            with pytest.raises(ValueError, match="3"):
                int("3")

    return question, asked


def test_a_question_is_called_with_its_case() -> None:
    question, asked = _questions()
    question.ask(1)
    assert asked == [(1,)]


def test_a_failure_keeps_its_type_and_names_its_question() -> None:
    question, asked = _questions()
    with pytest.raises(AssertionError, match="one") as caught:
        question.ask(2)
    assert caught.value.__notes__ == ["asked of 2: divided, by 2"]
    assert asked == [(2, 1), (2, 2), (2,)]


def test_failures_are_raised_together() -> None:
    question, _ = _questions()
    with pytest.raises(BaseExceptionGroup, match="2 questions about 3") as caught:
        question.ask(3)
    assert [each.__notes__ for each in caught.value.exceptions] == [
        ["asked of 3: divided, by 3"], ["asked of 3: raised"]]


def test_all_cases_are_tested() -> None:
    @of_each([1, 2, 3])
    def odd(case: int) -> None:
        """Whether it is odd."""
        assert case % 2

    @of_each([2, 3, 4])
    def even(case: int) -> None:
        assert case % 2

    with pytest.raises(AssertionError) as caught:
        odd()
    assert caught.value.__notes__ == ["asked of 2: odd"] and odd.__doc__ == "Whether it is odd."
    with pytest.raises(BaseExceptionGroup, match="2 cases"):
        even()


def test_a_lambda_is_named_by_its_line() -> None:
    first = test_a_lambda_is_named_by_its_line.__code__.co_firstlineno

    @of_each([
        lambda: "right",
        lambda: "wrong"])
    def answers(case: Callable[[], str]) -> None:
        assert case() == "right"

    with pytest.raises(AssertionError) as caught:
        answers()
    assert caught.value.__notes__ == [f"asked of lambda of line {first + 5}: answers"]


@of_each([1, 3, 5, 2, 4], by=lambda case: ("even", "odd")[case % 2])
def test_a_group_is_a_test(case: int) -> None:
    assert case < 6


def test_groups_are_named_and_look_at_their_own_cases() -> None:
    asked = []

    @of_each([(1, len), (2, len), (3, max)], by=lambda case: case[1].__name__)
    def small(case: tuple[int, object]) -> None:
        asked.append(case[0])
        assert case[0] < 2

    (mark,) = small.pytestmark
    assert list(mark.args[1]) == ["len", "max"]
    with pytest.raises(AssertionError) as caught:
        small("len")
    assert caught.value.__notes__ == ["asked of 2, len: small"] and asked == [1, 2]


def test_parts_of_a_case_are_arguments() -> None:
    @of_each([(1, 2), (3, 3), (4, 1)])
    def less(one: int, other: int) -> None:
        assert one < other

    with pytest.raises(BaseExceptionGroup, match="2 cases") as caught:
        less()
    assert [each.__notes__ for each in caught.value.exceptions] == [["asked of 3, 3: less"], ["asked of 4, 1: less"]]


def test_a_skip_is_one_case() -> None:
    asked = []

    @of_each([1, 2, 3, 4], by=lambda case: case > 2)
    def skipping(case: int) -> None:
        asked.append(case)
        if case != 2:
            pytest.skip("not two")

    skipping("False")
    with pytest.raises(pytest.skip.Exception, match="not two"):
        skipping("True")
    assert asked == [1, 2, 3, 4]


def test_a_test_is_where_its_question_is() -> None:
    assert inspect.unwrap(test_a_group_is_a_test).__code__.co_filename == __file__
    assert list(inspect.signature(test_a_group_is_a_test).parameters) == ["group"]
