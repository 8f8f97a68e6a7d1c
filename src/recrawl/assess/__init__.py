"""How good an archive is: blur and coherence of a capture, freshness, age and changes of a collection."""
