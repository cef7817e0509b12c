"""Models on disk: `model.safetensors` + `config.json` + `tokenizer.json`, and resume points.

Tensors carry the model's public names, `blocks.0.attn.q.weight` and so on. A resume point adds the
optimiser's moments under `optimizer.` and the random generators under `rng.`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from compute.core.errors import InvalidParams, UserError
from compute.core.texts import Text
from compute.text.chars import CharTokenizer
from compute.transformer.config import Config
from compute.transformer.model import Transformer
from compute.transformer.readable import CHECKPOINTS, NO_MODEL, no_such_weights, weights_in
from compute.transformer.readable import MODEL as MODEL

MEDIA_TYPE = "model/safetensors"

UNREADABLE = Text(
    en="The model's files can't be read ({what}). Train it again.",
    zh="读不出模型文件（{what}）。请重新训练。",
)


@dataclass(frozen=True)
class Loaded:
    """A model ready to run, in evaluation mode."""

    model: Transformer
    tokenizer: CharTokenizer
    run: dict[str, Any]  # the run's config.json
    weights: str  # name of the file, inside the run's folder, that the weights came from


def save(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Write a safetensors file whole or not at all; metadata values become JSON."""
    unfinished = path.with_name(f".{path.name}.part")
    plain = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    save_file(plain, unfinished, {name: json.dumps(value) for name, value in metadata.items()})
    unfinished.replace(path)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors (copied into memory) and decoded metadata of a file that `save` wrote."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = {name: json.loads(value) for name, value in (file.metadata() or {}).items()}
    return tensors, metadata


def checkpoint_name(step: int) -> str:
    return f"{CHECKPOINTS}/step-{step:06d}.safetensors"


def weights_of(folder: Path) -> list[str]:
    """Names of the files in a run's folder that hold weights, from the earliest to the newest."""
    files = folder.rglob("*.safetensors")
    return weights_in(path.relative_to(folder).as_posix() for path in files)


def newest_checkpoint(folder: Path) -> str | None:
    """Name of the latest resume point in a run's folder."""
    points = [name for name in weights_of(folder) if name != MODEL]
    return points[-1] if points else None


def load(folder: Path, device: str = "cpu", *, weights: str = "") -> Loaded:
    """The model of a run with the weights of that name, or with its newest.

    Raises UserError when there are none yet or a file is damaged, InvalidParams for a name that
    the run doesn't have.
    """
    names = weights_of(folder)
    if not names or not (folder / "config.json").exists():
        raise UserError(NO_MODEL)
    if found := no_such_weights(weights, names):
        raise InvalidParams([found])
    name = weights or names[-1]
    try:
        run = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        tokenizer = CharTokenizer.from_json((folder / "tokenizer.json").read_text("utf-8"))
        model = Transformer(Config.from_json(run["model"]))
        tensors, _ = read(folder / name)
        model.load_state_dict(
            {n: t for n, t in tensors.items() if not n.startswith(("optimizer.", "rng."))}
        )
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as damaged:
        raise UserError(UNREADABLE.format(what=type(damaged).__name__)) from damaged
    return Loaded(model.to(device).eval(), tokenizer, run, name)


# Resume points


def pack(
    model: Transformer, optimizer: torch.optim.Optimizer, generators: Mapping[str, torch.Generator]
) -> dict[str, Tensor]:
    """Everything a run needs to go on exactly where it is."""
    names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
    tensors: dict[str, Tensor] = dict(model.state_dict())
    for p, state in optimizer.state.items():
        for key, value in state.items():
            tensors[f"optimizer.{key}.{names[p]}"] = value
    for name, generator in generators.items():
        tensors[f"rng.{name}"] = generator.get_state()
    return tensors


def unpack(
    tensors: Mapping[str, Tensor],
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    generators: Mapping[str, torch.Generator],
) -> None:
    """Put what `pack` gave back into a fresh model, optimiser and generators."""
    parameters = dict(model.named_parameters())
    model.load_state_dict({name: tensors[name] for name in model.state_dict()})
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, key, parameter = name.split(".", 2)
            p = parameters[parameter]
            # AdamW keeps its step counter wherever it made it: on the CPU unless fused on a GPU.
            on_device = key != "step" or optimizer.param_groups[0].get("fused")
            optimizer.state[p][key] = value.to(p.device) if on_device else value
    for name, generator in generators.items():
        generator.set_state(tensors[f"rng.{name}"])
