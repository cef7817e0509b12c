"""The sampler against a brute-force one in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compute.transformer.sampling import distribution, draw, entropy, uniforms


def brute(probs: list[Fraction], top_k: int, top_p: Fraction) -> list[Fraction]:
    """Keep the k likeliest and the shortest prefix of the ranking that reaches p, renormalise."""
    ranking = sorted(range(len(probs)), key=lambda v: (-probs[v], v))
    nucleus = 1
    while sum(probs[v] for v in ranking[:nucleus]) < top_p and nucleus < len(probs):
        nucleus += 1
    kept = set(ranking[:nucleus]) & set(ranking[: top_k or len(probs)])
    total = sum(probs[v] for v in kept)
    return [probs[v] / total if v in kept else Fraction(0) for v in range(len(probs))]


def brute_draw(probs: list[Fraction], u: Fraction) -> int:
    total = Fraction(0)
    for v, p in enumerate(probs):
        total += p
        if total > u:
            return v
    raise AssertionError("u is below 1")


counts = st.lists(st.integers(1, 9), min_size=1, max_size=12)


@given(counts, st.integers(0, 13), st.integers(1, 40), st.integers(0, 999))
def test_against_brute_force(weights: list[int], top_k: int, p: int, u: int) -> None:
    """Ties included: small integer weights repeat often. p runs over 1/40 … 40/40."""
    exact = [Fraction(w, sum(weights)) for w in weights]
    logits = torch.tensor([math.log(w) for w in weights], dtype=torch.float64)
    d = distribution(logits, temperature=1.0, top_k=top_k, top_p=p / 40)
    expected = brute(exact, top_k, Fraction(p, 40))
    assert d.kept.tolist() == [q > 0 for q in expected]
    assert torch.allclose(d.probs, torch.tensor([float(q) for q in expected]).double())
    # A u that doesn't fall on a boundary, where rounding decides.
    point = Fraction(2 * u + 1, 2000 * 7919) * 7919
    edges = [sum(expected[: v + 1], Fraction(0)) for v in range(len(expected))]
    if all(abs(edge - point) > Fraction(1, 10**9) for edge in edges):
        assert draw(d.probs, float(point)) == brute_draw(expected, point)


def test_a_flat_distribution_is_cut_over_the_whole_vocabulary() -> None:
    for vocab, p, kept in [(1000, 0.95, 950), (100, 0.95, 95), (1000, 0.001, 1), (7, 0.5, 4)]:
        d = distribution(torch.zeros(vocab), temperature=1.0, top_k=0, top_p=p)
        assert int(d.kept.sum()) == kept
        assert d.kept[:kept].all()  # among equals the lower id stays
        assert torch.allclose(d.probs[:kept], torch.full((kept,), 1 / kept).double())


def test_temperature_zero_is_argmax_and_takes_the_lower_id_of_equals() -> None:
    d = distribution(torch.tensor([1.0, 3.0, 3.0, 2.0]), temperature=0.0, top_k=0, top_p=1.0)
    assert d.probs.tolist() == [0.0, 1.0, 0.0, 0.0]
    assert {draw(d.probs, u) for u in (0.0, 0.5, 1 - 2**-53)} == {1}


@pytest.mark.parametrize("temperature", [0.05, 1e-6, 1e-300])
def test_low_temperatures_do_not_overflow(temperature: float) -> None:
    logits = torch.tensor([300.0, -500.0, 299.0])
    d = distribution(logits, temperature=temperature, top_k=0, top_p=1.0)
    assert d.probs.isfinite().all() and float(d.probs.sum()) == pytest.approx(1.0)
    assert float(d.probs[0]) == pytest.approx(1 / (1 + math.exp(-1 / temperature)), rel=1e-9)


def test_temperature_divides_the_logits() -> None:
    logits = torch.tensor([0.5, -1.0, 2.0])
    d = distribution(logits, temperature=2.0, top_k=0, top_p=1.0)
    assert torch.allclose(d.scaled, logits.double() / 2)
    assert torch.allclose(d.probs, torch.softmax(logits.double() / 2, 0))


def test_the_draw_follows_id_order_and_never_takes_a_dropped_token() -> None:
    probs = torch.tensor([0.0, 0.25, 0.0, 0.75, 0.0], dtype=torch.float64)
    assert [draw(probs, u) for u in (0.0, 0.2499, 0.25, 0.999999999999)] == [1, 1, 3, 3]


def test_draws_have_the_frequencies_they_should() -> None:
    """Chi-square of 20,000 draws over 5 tokens; 99.9 % of such tests stay below 18.47 (4 d.f.)."""
    d = distribution(torch.tensor([0.0, 1.0, 2.0, 0.5, -1.0]), temperature=1.0, top_k=0, top_p=1.0)
    source = uniforms(7)
    seen = [0] * 5
    for _ in range(20_000):
        seen[draw(d.probs, source.random())] += 1
    chi2 = sum(
        (n - 20_000 * p) ** 2 / (20_000 * p) for n, p in zip(seen, d.probs.tolist(), strict=True)
    )
    assert chi2 < 18.47


def test_entropy() -> None:
    assert entropy(torch.full((8,), 1 / 8, dtype=torch.float64)) == pytest.approx(math.log(8))
    assert entropy(torch.tensor([1.0, 0.0])) == 0.0
