"""Commands that estimate, plan, compare, predict and explain."""
