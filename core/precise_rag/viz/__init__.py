"""HTML pages, SVG charts and terminal views.

page.py                   frame, style sheet and tables of every HTML page
charts.py                 SVG charts
trace_page.py             the page of one question's trace
segmentation_page.py      the page of a segmented document
segmentation_terminal.py  a segmented document as terminal lines
"""
