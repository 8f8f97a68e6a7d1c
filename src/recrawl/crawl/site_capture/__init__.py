"""The live capture of a whole site."""
