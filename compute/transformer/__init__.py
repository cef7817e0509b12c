"""A small decoder-only Transformer: train it, trace it, generate with it, check its numbers.

Letters used for shapes in this package: B batch, T tokens, C d_model, h heads, d_k = C / h,
F d_ff, V vocabulary, L layers.
"""
