"""HTML: links, text and embedded resources."""
