"""Constants of trainings outside the selection (`select/constants.py`), each with the measurement that set it, or none if it
was set by judgement."""

# Time limits

# Share of the limit for the scored training, if a refit follows.
SCORED_SHARE = 0.5
# Share of the remaining time for models without gradient steps; scores take the rest.
LEARNING = 0.7
# Largest shares of a limit reserved for the final scores, which then use fewer windows, and for a validation.
RESERVED, VALIDATING = 0.25, 0.03
# Duration of scoring relative to training, per window, until the first validation is timed.
SCORING_RATIO = 0.4
# Steps after which the timing is trusted; each of the first may have been delayed by other processes.
FIRST_STEPS = 5
# Windows for timing a validation, and the factor by which they grow if that was fast.
VALIDATION_TIMED, VALIDATION_GROWTH = 4, 8
# Share of the remaining time to plan scores for, since other processes run too, and seconds that they always have.
PLANNED_SHARE, GRACE = 0.8, 1.0

# Trainings

# Number of channels from which on a subset is drawn at each step, and its size.
MANY_CHANNELS, DRAWN_CHANNELS = 16, 8
# Relative margin of a validation error: on ETTh1 and ETTh2, smaller improvements do not mean lower test errors.
MARGIN = 0.02
# Steps below which a training by `auto` is short: at 300, its recipe is still better (results/trials.md).
SHORT_STEPS = 500
# Steps between checks of the losses, each of which waits for the device, and between those of several processes on
# stopping.
CHECK_EVERY, AGREE_EVERY = 50, 10
# Whole steps before one is captured as a CUDA graph: by then, Triton has compiled and tuned its kernels.
WARM_UP = 3

# Scores

# Windows per split that are always scored, and at least one per series.
FEWEST_SCORED = 16
# The same to score first if a forecast may be a fit, or is one of many targets, at least so many.
FEWEST_FITS, MANY_TARGETS = 4, 256
# Levels in percent whose coverage of the test split is recorded in `metrics.json`.
REPORTED_LEVELS = (80.0, 95.0)

# Memory and time that a training needs

# Copies of the weights: gradients, two moments, average, best, the last four, and serialised.
COPIES = 10
# Duration of a step relative to its forward pass, which is timed so often, of which the fastest counts.
STEP_RATIO, STEP_TIMINGS = 3.0, 3
# Seconds that a training may always take, and the factor by which the estimate must exceed the limit, so that only a
# wrong estimate could save the training.
SHORT_TRAINING, HOPELESS_RATIO = 30.0, 4.0
