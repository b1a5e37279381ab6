"""Configuration of runs: settings by name, plain values, and the training recipe."""
