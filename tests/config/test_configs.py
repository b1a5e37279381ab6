"""The recipes in `configs/`."""

from __future__ import annotations

from pathlib import Path

from femts.cli.recipe import RecipeOptions, TrainingOptions, make_recipe
from femts.models.registry import build_config
from femts.training.resolve import resolve_training

ROOT = Path(__file__).resolve().parents[2] / "configs"
CONFIGS = sorted(path for path in ROOT.rglob("*.yaml") if path.parent.name != "tasks")


def test_shipped_recipes_resolve() -> None:
    for path in CONFIGS:
        recipe = make_recipe(RecipeOptions("ETTh1", config=path), TrainingOptions())
        settings, training = resolve_training(recipe.model, {}, recipe.settings)
        for pred_len in recipe.pred_lens:
            build_config(recipe.model, seq_len=recipe.seq_len or 96, pred_len=pred_len, n_channels=7, settings=settings)
        assert training.lr > 0
