"""What decides a run: settings by name, plain values, the training recipe."""
