"""HTML pages, SVG charts and terminal views.

page.py                   frame, style sheet and tables of every HTML page
charts.py                 SVG charts
trace_page.py             the page of one question's trace
trace_context.py          in it, what was sent, in the documents
trace_stages.py           in it, the stages: their time, and the ranks after each
trace_comparison.py       two traces side by side
"""
