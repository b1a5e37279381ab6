"""Which past a mixer read: the numbers and their picture."""
