"""Pages, charts and terminal views of what the library did."""
