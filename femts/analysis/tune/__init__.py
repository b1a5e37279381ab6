"""Settings, look-back and recipe of a model, chosen by validation errors over many trials."""
