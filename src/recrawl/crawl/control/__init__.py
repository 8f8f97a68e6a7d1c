"""Run control, limits, statistics, metrics, logs and the worker registry."""
