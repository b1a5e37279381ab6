"""Other forecasting tools on the task lists of femts, each in an environment of its own; see `__main__.py`."""
