from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from compute.core import kinds
from compute.core.errors import InvalidParams, Problem, UnknownKind
from compute.core.kinds import Kind, Params, all_kinds, get, json_schema, validate, validate_set
from compute.core.texts import Text
from tests.compute.core.harness import ROOT, environment
from tests.compute.core.sample_kinds import CountParams, FormParams, words


def refused(**values: Any) -> list[Problem]:
    with pytest.raises(InvalidParams) as error:
        validate("test.form", {"prompt": "hi", **values})
    return error.value.problems


def test_defaults_are_filled_in() -> None:
    params = validate("test.form", {"prompt": "hi"})
    assert isinstance(params, FormParams)
    assert (params.heads, params.d_ff, params.norm) == (4, None, "pre")


@pytest.mark.parametrize(
    ("values", "pointer", "en", "zh", "nearest"),
    [
        (
            {"heads": 0},
            "/heads",
            "Heads: give a whole number from 1 to 16; you gave 0.",
            "注意力头数：请填 1 到 16 之间的整数，现在是 0。",
            [1],
        ),
        (
            {"heads": 10**30},
            "/heads",
            f"Heads: give a whole number from 1 to 16; you gave {10**30}.",
            f"注意力头数：请填 1 到 16 之间的整数，现在是 {10**30}。",
            [16],
        ),
        (
            {"heads": 2.5},
            "/heads",
            "Heads: give a whole number from 1 to 16; you gave 2.5.",
            "注意力头数：请填 1 到 16 之间的整数，现在是 2.5。",
            [2, 3],
        ),
        (
            {"heads": "4"},
            "/heads",
            'Heads: give a whole number from 1 to 16; you gave "4".',
            '注意力头数：请填 1 到 16 之间的整数，现在是 "4"。',
            None,
        ),
        (
            {"heads": True},
            "/heads",
            "Heads: give a whole number from 1 to 16; you gave true.",
            "注意力头数：请填 1 到 16 之间的整数，现在是 true。",
            None,
        ),
        (
            {"heads": math.nan},
            "/heads",
            "Heads: give a whole number from 1 to 16; you gave nan.",
            "注意力头数：请填 1 到 16 之间的整数，现在是 nan。",
            None,
        ),
        (
            {"heads": {"$num": "NaN"}},
            "/heads",
            'Heads: give a whole number from 1 to 16; you gave {"$num": "NaN"}.',
            '注意力头数：请填 1 到 16 之间的整数，现在是 {"$num": "NaN"}。',
            None,
        ),
        (
            {"d_model": 100},
            "/d_model",
            "Width: give a whole number from 16 to 512, a multiple of 8; you gave 100.",
            "宽度：请填 16 到 512 之间的整数，且是 8 的倍数，现在是 100。",
            [96, 104],
        ),
        (
            {"d_ff": 0},
            "/d_ff",
            "FFN width: give a whole number from 1 to 4096, or null for the default; you gave 0.",
            "FFN 宽度：请填 1 到 4096 之间的整数，或用 null 表示默认，现在是 0。",
            [1],
        ),
        (
            {"rate": 0},
            "/rate",
            "Rate: give a number greater than 0 and less than 1; you gave 0.",
            "速率：请填大于 0、小于 1 的数，现在是 0。",
            None,
        ),
        (
            {"rate": math.inf},
            "/rate",
            "Rate: give a number greater than 0 and less than 1; you gave inf.",
            "速率：请填大于 0、小于 1 的数，现在是 inf。",
            None,
        ),
        (
            {"norm": "Pre"},
            "/norm",
            'Norm: choose one of pre, post; you gave "Pre". Did you mean "pre"?',
            '归一化：请从 pre, post 中选一个，现在是 "Pre"。你要的可能是“pre”。',
            ["pre"],
        ),
        (
            {"norm": 3},
            "/norm",
            "Norm: choose one of pre, post; you gave 3.",
            "归一化：请从 pre, post 中选一个，现在是 3。",
            ["pre", "post"],
        ),
        (
            {"dims": 60},
            "/dims",
            "Dims: choose one of 50, 100; you gave 60.",
            "维数：请从 50, 100 中选一个，现在是 60。",
            [50, 100],
        ),
        (
            {"mode": "fats"},
            "/mode",
            'Mode: choose one of fast, slow; you gave "fats". Did you mean "fast"?',
            '模式：请从 fast, slow 中选一个，现在是 "fats"。你要的可能是“fast”。',
            ["fast"],
        ),
        (
            {"shuffle": "perhaps"},
            "/shuffle",
            'Shuffle: give true or false; you gave "perhaps".',
            '打乱：请填 true 或 false，现在是 "perhaps"。',
            None,
        ),
        (
            {"prompt": ""},
            "/prompt",
            'Prompt: give text of 1 to 20 characters; you gave "".',
            '提示：请填 1 到 20 个字符的文本，现在是 ""。',
            None,
        ),
        (
            {"prompt": 'x"><img src=x onerror=alert(1)>'},
            "/prompt",
            "Prompt: give text of 1 to 20 characters; you gave "
            '"x\\"><img src=x onerror=alert(1)>".',
            '提示：请填 1 到 20 个字符的文本，现在是 "x\\"><img src=x onerror=alert(1)>"。',
            None,
        ),
        (
            {"prompt": "a\ud800"},
            "/prompt",
            "Prompt: the text holds half a character (a lone surrogate); paste it again.",
            "提示：文本里有半个字符（孤立代理项），请重新粘贴。",
            None,
        ),
        (
            {"terms": ["a", 2]},
            "/terms/1",
            "Terms: give a list of at most 3 items; you gave 2.",
            "词项：请填不超过 3 项的列表，现在是 2。",
            None,
        ),
        (
            {"head": 4},
            "/head",
            'There is no parameter "head". Did you mean "heads"?',
            "没有名为“head”的参数。你要的可能是“heads”。",
            ["heads"],
        ),
        (
            {"a/b~c": 1},
            "/a~1b~0c",
            'There is no parameter "a/b~c". The parameters are prompt, heads, d_model, d_ff, norm, '
            "dims, mode, rate, shuffle, terms.",
            "没有名为“a/b~c”的参数。可用的参数有 prompt, heads, d_model, d_ff, norm, dims, mode, "
            "rate, shuffle, terms。",
            None,
        ),
        (
            {"heads": 5},
            "/heads",
            "Heads must divide 96.",
            "头数须整除 96。",
            [1, 2, 3, 4, 6, 8, 12, 16],
        ),
    ],
)
def test_a_wrong_value_is_named_in_both_languages(
    values: dict[str, Any], pointer: str, en: str, zh: str, nearest: list[Any] | None
) -> None:
    assert refused(**values) == [Problem(pointer, Text(en, zh), nearest)]


def test_what_is_missing_is_named() -> None:
    with pytest.raises(InvalidParams) as error:
        validate("test.form", {})
    assert error.value.problems == [
        Problem(
            "/prompt",
            Text(
                "Prompt is missing: give text of 1 to 20 characters.",
                "缺少提示：请填 1 到 20 个字符的文本。",
            ),
        )
    ]


def test_every_problem_is_told_at_once() -> None:
    assert [p.pointer for p in refused(heads=0, rate=2, nrm="pre")] == ["/heads", "/rate", "/nrm"]


@pytest.mark.parametrize("raw", [None, [], "x", 3, [["prompt", "hi"]]])
def test_params_are_an_object(raw: Any) -> None:
    with pytest.raises(InvalidParams) as error:
        validate("test.form", raw)
    (problem,) = error.value.problems
    assert problem.pointer == ""
    assert problem.text.en == "The params are one JSON object of names and values."


def test_a_key_that_is_no_string_is_refused() -> None:
    with pytest.raises(InvalidParams, match="1"):
        validate("test.form", {"prompt": "hi", 1: 2})


def test_a_long_value_is_cut_in_the_message() -> None:
    (problem,) = refused(prompt="词" * 10_000)
    assert len(problem.text.en) < 150 and problem.text.en.endswith("….")


@pytest.mark.parametrize("value", [np.int64(8), np.float64(8.0), 8.0, np.array(8)])
def test_a_notebooks_numbers_are_taken(value: Any) -> None:
    params = validate("test.form", {"prompt": "hi", "heads": value})
    assert isinstance(params, FormParams) and params.heads == 8
    assert type(params.heads) is int


def test_params_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValueError, match="frozen"):
        validate("test.count", {}).steps = 3  # type: ignore[attr-defined]


def test_live_changes_are_validated_like_the_rest() -> None:
    kind, params = get("test.count"), validate("test.count", {"steps": 3})
    changed = validate_set(kind, params, {"lr": 2})
    assert changed == CountParams(steps=3, lr=2.0)
    for values, said in [
        ({"lr": 11}, "Learning rate: give a number"),
        ({"steps": 9}, '"steps" can\'t be changed while the job runs. You can change lr.'),
        ({"lr": 1, "rl": 1}, '"rl" can\'t be changed'),
        ({}, "Say which values"),
        ([], "Say which values"),
        (None, "Say which values"),
    ]:
        with pytest.raises(InvalidParams, match=said):
            validate_set(kind, params, values)


def test_an_unknown_kind_names_the_nearest() -> None:
    with pytest.raises(UnknownKind) as error:
        get("test.cuont")
    assert error.value.nearest[0] == "test.count"
    assert error.value.text == Text(
        'There is no kind "test.cuont". Did you mean "test.count"?',
        "没有名为“test.cuont”的任务类型。你要的可能是“test.count”。",
    )


def test_kinds_are_listed_by_name() -> None:
    names = [kind.name for kind in all_kinds()]
    assert names == sorted(names) and {"test.count", "test.form"} <= set(names)


def declare(**changes: Any) -> Kind:
    base: dict[str, Any] = {
        "name": "test.extra",
        "params": CountParams,
        "queue": "training",
        "run": "somewhere:run",
        "title": words("X"),
        "summary": words("X"),
    }
    return Kind(**{**base, **changes})


class Wordless(Params):
    n: int = 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "Train"}, "lab.verb"),
        ({"run": "somewhere.run"}, "module:function"),
        ({"controls": frozenset({"stop"})}, "controls are of"),
        ({"settable": frozenset({"lr"})}, "set and settable"),
        ({"settable": frozenset({"rl"}), "controls": frozenset({"set"})}, "settable names params"),
        ({"refs": {"model": ("test.count",)}}, "refs name params"),
        ({"refs": {"steps": ()}}, "which kinds it may name"),
        ({"deadline_s": 0}, "deadline_s"),
        ({"params": Wordless}, "param 'n' is not made by param"),
    ],
)
def test_a_faulty_declaration_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        declare(**changes)


def test_a_name_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "_registry", dict(kinds._registry))
    kinds.register(declare())
    kinds.register(declare(deadline_s=5))  # the same kind again, as a reload does
    with pytest.raises(ValueError, match="taken"):
        kinds.register(declare(run="elsewhere:run"))


def test_the_schema_holds_what_a_form_needs() -> None:
    schema = json_schema(get("test.form"))
    fields = schema["params"]["properties"]
    assert schema["title"] == {"en": "Form", "zh-hans": "表单"}
    assert schema["params"]["required"] == ["prompt"]
    assert schema["params"]["additionalProperties"] is False
    assert fields["heads"] == {
        "type": "integer",
        "default": 4,
        "minimum": 1,
        "maximum": 16,
        "title": "Heads",
        "x-label": {"en": "Heads", "zh-hans": "注意力头数"},
        "x-help": {"en": "H.", "zh-hans": "头。"},
    }
    assert fields["d_ff"]["type"] == ["integer", "null"] and fields["d_ff"]["maximum"] == 4096
    assert fields["d_ff"]["default"] is None
    norm = fields["norm"]
    assert norm["enum"] == ["pre", "post"] and norm["x-widget"] == "segmented"
    assert norm["x-choices"]["post"] == {"en": "after", "zh-hans": "之后"}
    assert norm["x-group"] == {"en": "Model", "zh-hans": "模型"} and norm["x-advanced"] is True
    assert fields["dims"]["enum"] == [50, 100] and set(fields["dims"]["x-choices"]) == {"50", "100"}
    assert fields["rate"]["exclusiveMinimum"] == 0
    assert json_schema(get("test.count"))["params"]["properties"]["wait_ms"]["x-unit"] == "ms"


def test_the_schema_of_every_kind_is_json() -> None:
    for kind in all_kinds():
        schema = json.loads(json.dumps(json_schema(kind), allow_nan=False))
        assert schema["name"] == kind.name
        assert set(schema["settable"]) <= set(schema["params"]["properties"])


def test_declaring_every_kind_imports_nothing_heavy() -> None:
    code = (
        "import sys; from compute.core.kinds import all_kinds, json_schema; "
        "[json_schema(kind) for kind in all_kinds()]; "
        "print([m for m in ('torch', 'numpy', 'safetensors', 'gensim') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment(),
        check=True,
    )
    assert done.stdout.strip() == "[]"
