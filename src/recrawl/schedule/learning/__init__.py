"""State that policies learn from visits."""
