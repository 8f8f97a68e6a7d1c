"""The threshold (shadow price) of a visit, and due times at a price."""
