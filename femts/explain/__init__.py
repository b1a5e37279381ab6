"""Past that a mixer read: the numbers and their picture."""
