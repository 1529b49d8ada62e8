"""HTML pages and SVG charts of reports.

page.py    frame, style sheet and tables
charts.py  SVG charts
"""
