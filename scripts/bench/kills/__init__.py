"""Kills commands at changes of the file system, and compares what they end with when they are repeated."""
