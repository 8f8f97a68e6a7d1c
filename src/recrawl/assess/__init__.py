"""How good an archive is: blur and coherence of a capture, freshness, age and changes of a collection.

Also whether pages change by chance, and how well estimators and predictions predicted what visits then found; and where
things lie in the images that show it: trees, packed circles, strips of versions.
"""
