"""Results for people to read.

tables.py  lines for a terminal, and Markdown
page.py    one HTML page
"""
