"""The evaluations of the papers, as computations without output."""
