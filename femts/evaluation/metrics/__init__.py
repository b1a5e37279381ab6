"""The metrics of femts, one class each, in one file a family."""
