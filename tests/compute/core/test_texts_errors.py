from __future__ import annotations

import numpy as np
import pytest
import torch

from compute.core.errors import (
    REASONS,
    Canceled,
    ComputeError,
    InvalidParams,
    Problem,
    UnknownKind,
    UserError,
    classify,
)
from compute.core.texts import Text


@pytest.mark.parametrize(
    ("lang", "said"),
    [("en", "a"), ("zh-hans", "甲"), ("zh_CN", "甲"), ("ZH", "甲"), ("de", "a"), ("", "a")],
)
def test_text_speaks_the_language_asked_for(lang: str, said: str) -> None:
    assert Text("a", "甲").get(lang) == said


def test_text_formats_both_languages_and_leaves_braces_in_values() -> None:
    text = Text("{n} of {what}", "{what}的{n}").format(n="{x}", what=Text("heads", "头"))
    assert text.as_dict() == {"en": "{x} of heads", "zh-hans": "头的{x}"}


def test_every_reason_has_words_and_no_other_is_taken() -> None:
    for reason, text in REASONS.items():
        error = ComputeError(reason=reason)
        assert str(error) == text.en and error.data()["message_zh"] == text.zh
    with pytest.raises(ValueError, match="unknown reason 'bored'"):
        ComputeError(reason="bored")


def test_invalid_params_carries_each_problem() -> None:
    error = InvalidParams(
        [Problem("/a", Text("A.", "甲。"), [1]), Problem("/b", Text("B.", "乙。"))]
    )
    assert str(error) == "A. B."
    assert error.data() == {
        "reason": "invalid_input",
        "message": "A. B.",
        "message_zh": "甲。乙。",
        "problems": [
            {"pointer": "/a", "text": {"en": "A.", "zh-hans": "甲。"}, "nearest": [1]},
            {"pointer": "/b", "text": {"en": "B.", "zh-hans": "乙。"}},
        ],
    }


def test_canceled_passes_an_except_exception() -> None:
    assert not issubclass(Canceled, Exception)


def test_unknown_kind_shows_braces_in_a_name_as_they_are() -> None:
    assert str(UnknownKind("{x}", [])) == 'There is no kind "{x}".'


def test_memory_errors_are_known_by_all_their_names() -> None:
    with pytest.raises(MemoryError) as numpy_error:
        np.empty(2**60, dtype=np.uint8)
    with pytest.raises(RuntimeError) as torch_error:
        torch.empty(2**58)
    found = [MemoryError(), numpy_error.value, torch_error.value, torch.OutOfMemoryError("x")]
    assert [classify(exc).reason for exc in found] == ["out_of_memory"] * 4


def test_other_errors_are_internal_and_keep_their_details_to_themselves() -> None:
    error = classify(RuntimeError("password 1234"))
    assert error.reason == "internal"
    assert "RuntimeError" in error.text.en and "1234" not in error.text.en + error.text.zh
    user_error = UserError(Text("x", "x"))
    assert classify(user_error) is user_error


def test_a_sentence_that_two_fields_share_is_said_once() -> None:
    text = Text("They don't fit.", "两者不符。")
    error = InvalidParams([Problem("/a", text), Problem("/b", text)])
    assert error.text == text
    assert [problem.pointer for problem in error.problems] == ["/a", "/b"]
