"""Recipes: those that come with femts, and which of flags, assignments and file goes first."""

from __future__ import annotations

from pathlib import Path

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def test_shipped_recipes_fit_their_models() -> None:
    for path in sorted(CONFIGS.glob("*.yaml")):
        from femts.cli.recipe import RecipeOptions, TrainingOptions, make_recipe
        from femts.config.settings import apply_settings
        from femts.config.training import TrainingConfig
        from femts.models.registry import build_config

        dataset = None if "dataset:" in path.read_text().replace("--dataset", "") else "ETTh1"
        recipe = make_recipe(RecipeOptions(dataset, config=path), TrainingOptions())
        parts: dict[str, dict[str, object]] = {"model": {}, "training": {}}
        for key, value in recipe.settings.items():
            section, _, name = key.partition(".")
            parts[section][name] = value
        for pred_len in recipe.pred_lens:
            build_config(
                recipe.model, seq_len=recipe.seq_len or 96, pred_len=pred_len, n_channels=7, settings=parts["model"]
            )
        assert apply_settings(TrainingConfig(), parts["training"], where="training").steps(100) >= 100


def test_flags_go_before_assignments_and_those_before_the_file(tmp_path: Path) -> None:
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
