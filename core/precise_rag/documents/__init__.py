"""Reading documents: files and folders in, texts with their titles and pages out.

reading.py             `read_documents`: the documents of each file
files.py               the files of a folder, their kinds, and their bytes and text
records.py             records of JSON Lines, JSON and CSV files, and mail
conversion.py          HTML, PDF, Word, PowerPoint, EPUB and notebooks, converted in a process of its own
conversion_process.py  that process
pdf.py                 PDF as Markdown
"""

from precise_rag.documents.reading import read_documents

__all__ = ["read_documents"]
