"""How pages change: Poisson test, distributions, rhythm."""
