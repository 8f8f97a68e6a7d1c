"""Reproductions of published results, and the experiments of recrawl."""
