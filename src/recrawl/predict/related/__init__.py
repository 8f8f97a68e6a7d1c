"""Related pages and what they tell."""
