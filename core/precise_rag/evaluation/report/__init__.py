"""Reports: results as lines, Markdown tables and one HTML page."""
