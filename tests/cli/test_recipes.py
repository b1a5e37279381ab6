"""Precedence of flags, assignments and configuration files."""

from __future__ import annotations

from pathlib import Path


def test_option_precedence(tmp_path: Path) -> None:
    from femts.cli.recipe import RecipeOptions, TrainingOptions, make_recipe

    (tmp_path / "c.yaml").write_text(
        "dataset: a\nmodel: naive\npred_len: [12, 24]\ntraining: {lr: 1, seed: 1, clip: 1}\n"
    )
    recipe = make_recipe(
        RecipeOptions("b", None, config=tmp_path / "c.yaml", assignments=["training.lr=2", "training.seed=2"]),
        TrainingOptions(seed="3"),
    )
    assert (recipe.dataset, recipe.model, recipe.pred_lens) == ("b", "naive", (12, 24))
    assert recipe.settings == {"training.lr": "2", "training.seed": "3", "training.clip": 1}
