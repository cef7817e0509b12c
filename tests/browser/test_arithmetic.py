"""core/arithmetic and core/safetensors in Chromium, against numbers that torch computes here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser, Page
from safetensors.torch import save_file

from tests.stack import Stack

CLOSE: dict[str, Any] = {"rel": 1e-9, "abs": 1e-12}


@pytest.fixture(scope="module")
def page(browser: Browser, stack: Stack) -> Page:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{stack.url}/labs/transformer")
    return page


def call(page: Page, function: str, *arguments: Any) -> Any:
    return page.evaluate(
        """async ([name, args]) => {
          const module = await import("core/arithmetic");
          const found = module[name](...args);
          const plain = (value) => value instanceof Float64Array ? [...value]
            : value instanceof Set ? [...value] : value;
          return found && typeof found === "object"
            ? Object.fromEntries(Object.entries(found).map(([k, v]) => [k, plain(v)])) : found;
        }""",
        [function, list(arguments)],
    )


def test_dot(page: Page) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(96, dtype=torch.float64), torch.randn(96, dtype=torch.float64)
    found = call(page, "dot", a.tolist(), b.tolist(), 0.25)
    assert found["value"] == pytest.approx(float(a @ b) + 0.25, **CLOSE)
    assert len(found["terms"]) == 96
    assert found["terms"][5]["product"] == pytest.approx(float(a[5] * b[5]), **CLOSE)


def test_softmax_of_large_and_masked_scores(page: Page) -> None:
    row = [900.0, 902.5, 899.0]
    want = torch.softmax(torch.tensor(row, dtype=torch.float64), 0)
    for i in range(3):
        assert call(page, "softmax", row, i)["value"] == pytest.approx(float(want[i]), **CLOSE)
    blind = page.evaluate(
        "async () => (await import('core/arithmetic')).softmax([-Infinity, -Infinity], 1).value"
    )
    assert blind == 0


def test_layer_norm(page: Page) -> None:
    torch.manual_seed(1)
    x = torch.randn(48, dtype=torch.float64) * 3 + 1
    gamma, beta = torch.randn(48, dtype=torch.float64), torch.randn(48, dtype=torch.float64)
    want = torch.nn.functional.layer_norm(x, (48,), gamma, beta, 1e-5)
    found = call(page, "layerNorm", x.tolist(), 7, float(gamma[7]), float(beta[7]), 1e-5)
    assert found["value"] == pytest.approx(float(want[7]), **CLOSE)
    assert found["variance"] == pytest.approx(float(x.var(unbiased=False)), **CLOSE)


def test_gelu_and_erf_over_their_whole_range(page: Page) -> None:
    xs = torch.linspace(-9, 9, 181, dtype=torch.float64)
    want_gelu, want_erf = torch.nn.functional.gelu(xs), torch.erf(xs)
    found = page.evaluate(
        """async (xs) => {
          const { gelu, erf } = await import("core/arithmetic");
          return xs.map((x) => [gelu(x).value, erf(x)]);
        }""",
        xs.tolist(),
    )
    for i, (gelu, erf) in enumerate(found):
        assert gelu == pytest.approx(float(want_gelu[i]), rel=1e-9, abs=1e-12)
        assert erf == pytest.approx(float(want_erf[i]), rel=1e-12, abs=1e-13)


def test_entropy(page: Page) -> None:
    p = torch.softmax(torch.tensor([0.3, -1.0, 2.0, 0.0], dtype=torch.float64), 0)
    want = float(torch.special.entr(p).sum())
    assert call(page, "entropy", p.tolist())["value"] == pytest.approx(want, **CLOSE)


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, 0, 1.0), (0.7, 5, 1.0), (1.3, 0, 0.9), (0.05, 0, 0.5), (2.0, 3, 0.6), (0.0, 0, 1.0)],
)
def test_next_token_distribution_is_the_servers(
    page: Page, temperature: float, top_k: int, top_p: float
) -> None:
    from compute.transformer import sampling

    torch.manual_seed(4)
    logits = torch.randn(40) * 3
    want = sampling.distribution(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    how = {"temperature": temperature, "topK": top_k, "topP": top_p}
    found = call(page, "distribution", logits.tolist(), how)
    assert sorted(found["kept"]) == torch.nonzero(want.kept).flatten().tolist()
    assert found["probs"] == pytest.approx(want.probs.tolist(), rel=1e-9, abs=1e-12)
    for u in (0.0, 0.2, 0.5, 0.999999):
        assert call(page, "pick", found["probs"], u) == sampling.draw(want.probs, u)


def test_safetensors_slices_by_range(page: Page, tmp_path: Path) -> None:
    """Slices of a file that a server hands out by Range, and of one that ignores Range."""
    torch.manual_seed(2)
    tensors = {
        "a": torch.randn(3, 4, 5),
        "b": torch.arange(7, dtype=torch.int64),
        "big": torch.randn(200, 300),
        "special": torch.tensor([float("nan"), float("-inf"), 1.5]),
    }
    path = tmp_path / "x.safetensors"
    save_file(tensors, path, metadata={"note": "hello"})
    raw = path.read_bytes()
    asked: list[str | None] = []

    def serve(route: Any) -> None:
        wanted = route.request.headers.get("range")
        asked.append(wanted)
        if wanted is None or "whole" in route.request.url:
            route.fulfill(status=200, body=raw)
            return
        first, last = (int(n) for n in wanted.removeprefix("bytes=").split("-"))
        route.fulfill(status=206, body=raw[first : last + 1])

    page.route("**/fixture/*", serve)
    for name in ("part.safetensors", "whole.safetensors"):
        found = page.evaluate(
            """async (url) => {
              const { open } = await import("core/safetensors");
              const file = await open(url);
              return {
                names: file.names.sort(), note: file.metadata.note, shape: file.shape("a"),
                slice: [...await file.slice("a", 20, 25)],
                part: [...(await file.part("a", 2)).data],
                ints: [...await file.slice("b")],
                row: [...await file.slice("big", 150 * 300, 151 * 300)],
                special: [...await file.slice("special")].map(String),
                refused: await file.slice("a", 50, 70).catch((error) => error.name + error.message),
                missing: await file.slice("z").catch((error) => error.message),
              };
            }""",
            f"/fixture/{name}",
        )
        assert found["names"] == sorted(tensors)
        assert found["note"] == "hello"
        assert found["shape"] == [3, 4, 5]
        assert found["slice"] == tensors["a"].flatten()[20:25].tolist()
        assert found["part"] == tensors["a"][2].flatten().tolist()
        assert found["ints"] == list(range(7))
        assert found["row"] == tensors["big"][150].tolist()
        assert found["special"] == ["NaN", "-Infinity", "1.5"]
        assert "outside" in found["refused"]
        assert 'no tensor "z"' in found["missing"]
    ranges = [wanted for wanted in asked if wanted]
    assert all(int(w.split("-")[1]) < len(raw) + 65_536 for w in ranges)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"norm": "post", "positions": "sinusoidal"},
        {"layers": 1, "heads": 1, "d_model": 16, "d_ff": 7, "block": 8},
    ],
    ids=["default", "as in 2017", "odd widths"],
)
def test_the_diagrams_parameter_count_is_the_models(page: Page, change: dict[str, Any]) -> None:
    from compute.transformer.config import Config
    from compute.transformer.model import Transformer

    values = {"layers": 4, "heads": 4, "d_model": 96, "d_ff": None, "block": 64}
    values |= {"norm": "pre", "positions": "learned"} | change
    model = Transformer(Config(vocab=81, **values | {"d_ff": values["d_ff"] or 4 * 96}))
    found = page.evaluate(
        """async (values) => {
          const { parameterCount } = await import("labs/transformer-diagram");
          return parameterCount(values, 81);
        }""",
        values,
    )
    assert found == sum(p.numel() for p in model.parameters())
