"""Commands that bring pages and captures in and out: init, add, import, capture, assess, report, export."""
