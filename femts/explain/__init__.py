"""Explanation of what a mixer read: the numbers and their plot."""
