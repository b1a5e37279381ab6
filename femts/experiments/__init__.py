"""Tables of experiments: a grid of cells, engines that run them, a store of records, and the table made of these."""
