"""The report: one HTML file about an archive. Sections are plain data, the page gives them shape."""
