"""recrawl inside programs of others: each module is for one of them, and only that one imports it."""
