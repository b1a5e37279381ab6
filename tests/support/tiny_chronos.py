"""Tiny pretrained models with random weights, made by chronos-forecasting's own classes; none is fetched."""

from __future__ import annotations

from pathlib import Path

import torch

NINE = tuple(tenth / 10 for tenth in range(1, 10))
TWENTY_ONE = (0.01, *(twentieth / 20 for twentieth in range(1, 20)), 0.99)
PATCHES = {"context_length": 64, "input_patch_size": 8, "input_patch_stride": 8, "use_reg_token": True}
SHAPE = {"d_model": 16, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 4, "initializer_factor": 0.5}


def save_chronos2(folder: Path, seed: int = 0) -> Path:
    """Save a Chronos-2 of 21 quantiles that forecasts 32 steps at once."""
    from chronos.chronos2 import Chronos2CoreConfig, Chronos2Model

    further = {"output_patch_size": 8, "max_output_patches": 4, "time_encoding_scale": 64, "use_arcsinh": True}
    config = Chronos2CoreConfig(**SHAPE, chronos_config={**PATCHES, **further, "quantiles": list(TWENTY_ONE)})
    return _save(Chronos2Model, config, "Chronos2Pipeline", folder, seed)


def save_chronos_bolt(folder: Path, seed: int = 0) -> Path:
    """Save a Chronos-Bolt of nine quantiles that forecasts 16 steps at once."""
    from chronos.chronos_bolt import ChronosBoltModelForForecasting
    from transformers import T5Config

    tokens = {"vocab_size": 2, "decoder_start_token_id": 0, "pad_token_id": 0, "num_decoder_layers": 1}
    config = T5Config(**SHAPE, **tokens, chronos_config={**PATCHES, "prediction_length": 16, "quantiles": list(NINE)})
    return _save(ChronosBoltModelForForecasting, config, "ChronosBoltPipeline", folder, seed)


def _save(network, config, pipeline: str, folder: Path, seed: int) -> Path:  # type: ignore[no-untyped-def]
    from transformers.utils import logging

    logging.disable_progress_bar()
    config.chronos_pipeline_class = pipeline
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network(config).save_pretrained(folder)
    return folder


SAVE = {"chronos2": save_chronos2, "chronos_bolt": save_chronos_bolt}
