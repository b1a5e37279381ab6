"""Data: what there is, where it comes from, how it is checked, split, scaled and cut into windows."""
