"""Reading documents: files and folders in, texts with their titles and pages out.

reading.py             `read_documents`: the documents of each file
files.py               the files of a folder, their kinds, and their bytes and text
records.py             records of JSON Lines, JSON and CSV files, and mail
conversion.py          HTML, PDF, Word, PowerPoint, EPUB and notebooks, converted in a process of its own
conversion_process.py  that process
"""

from precise_rag.documents.files import document_files, read_text
from precise_rag.documents.reading import read_documents
from precise_rag.documents.records import read_json_lines

__all__ = ["document_files", "read_documents", "read_json_lines", "read_text"]
