"""Use cases: a typed question in, a typed answer out. Commands, Python, the HTTP API and the dashboard share them."""
