"""Configuration of a run: settings by name, plain values, the training recipe."""
