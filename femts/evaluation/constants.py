"""Constants of scores and intervals, each with the measurement that set it, or none if it was set by judgement."""

# Scores

# Smallest seasonal change that counts, relative to the standard deviation of the rows: models compute in float32 in units
# of that deviation, so an error relative to a smaller change would measure rounding.
FLOOR = 2.0**-20
# A target or series is reported if its mean error is this many times that of the others.
DOMINANT_RATIO = 10
# Relative difference below which errors count as equal, as printed, and the squared error in scaled units that may be due
# to rounding.
EVEN, NOTHING = 5e-4, 1e-10
# Quantiles of WQL below the median, mirrored above it.
TAILS = (0.1, 0.2, 0.3, 0.4)
# Largest number of errors by window or series kept in a record.
MOST_ERRORS = 200
# Models that fold channels into the batch process windows x channels sequences; more than this needs much memory, and
# on a CPU more time, because they no longer fit in the cache.
SERIES_PER_BATCH, SERIES_PER_BATCH_ON_CPU = 4096, 512

# Intervals, with levels in percent

# Levels that are scored, and corrected for quantile models; and those that are calibrated for other models.
LEVELS = (50.0, 80.0, 90.0, 95.0, 99.0)
GRID = (10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.9)
# Percentage points between level and coverage above which a note is shown.
MOST_MISSED = 10.0
# Numbers of all and of disjoint windows below both of which they are few; with a hundred errors, even 99 % is an order
# statistic.
FEW, FEW_DISJOINT = 100, 20
# Share of intervals around the points in their mean with those of members, and the number of windows without overlap at
# which it is half of that if they are few ("Intervals of a mean", results/trials.md).
SHARE, FADING = 0.5, 20
# Values forecast for the intervals of a refitted forecaster, and fewest windows with them: overlapping windows of a large
# table add little to half of them.
HELD_OUT, FEWEST_HELD_OUT = 4_000_000, 1000
# Numbers held in memory, 640 MiB; more windows need several passes. Errors used to estimate the difficulty, and divided
# by it at a time.
MOST_NUMBERS, SAMPLED_ERRORS = 5 * 2**25, 2**20

# Joint errors

# Numbers kept of the errors of whole forecast origins, 16 MiB in half precision, and largest number of origins; and the
# number from which on paths repeat their errors instead of varying them.
MOST_JOINT, MOST_ORIGINS, MANY_ORIGINS = 2**23, 256, 100
# Level in percent whose half-width is the unit of these errors, and the smallest unit.
UNIT_LEVEL, SMALLEST_UNIT = 80.0, 1e-6

# Difficulty of windows

# Standard deviations; a training mean closer to 0 is no reference for levels.
NEAR_ZERO = 0.1
# Fraction of the levels below the lowest level used.
RARE = 0.01
# Largest ratio of sizes, at which they are clipped.
FARTHEST = 1e3
# Phases of a season; each phase of a longer one has too few errors.
MOST_PHASES = 1024
# Levels whose loss is compared.
CHOSEN_BY = (50.0, 80.0, 95.0)

# Intervals of mean differences, by the block bootstrap

DRAWS, SEED, LEVEL = 2000, 0, 0.95
# Length of a block in horizons: in simulations, intervals covered 89 % with one horizon and 93 % with two.
BLOCK = 2
# Blocks that an interval needs.
FEWEST_BLOCKS = 3
