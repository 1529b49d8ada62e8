"""Reading documents: from files and folders to texts with their titles, headings and pages.

reading.py     `read_documents`: files in, documents out, each file accounted for
folders.py     which files there are at a path, and which are left out and why
ignoring.py    the rules of .gitignore files
kinds.py       what the name of a file says about its content
opening.py     bytes of regular files, within a limit; their encoding
records.py     records of JSON Lines and JSON files, and what becomes of their fields
tables.py      tables of values: CSV files
manual.py      manual pages, from their source; manual_page.py: the macros of man; mdoc.py: those of BSD
conversion.py  HTML, PDF, office files, EPUB and notebooks, by a converter in a process of its own
converter.py   that process
office.py      OpenDocument, spreadsheets and Rich Text
pdf.py         pages, headings and tables of a PDF
places.py      the page and the headings of a place in a document
"""

from precise_rag.documents.conversion import MAX_SECONDS
from precise_rag.documents.folders import FileReport, document_files
from precise_rag.documents.opening import MAX_FILE_BYTES, read_text
from precise_rag.documents.places import Place, place_of
from precise_rag.documents.reading import read_documents, read_standard_input
from precise_rag.documents.records import read_json_lines

__all__ = [
    "MAX_FILE_BYTES",
    "MAX_SECONDS",
    "FileReport",
    "Place",
    "document_files",
    "place_of",
    "read_documents",
    "read_json_lines",
    "read_standard_input",
    "read_text",
]
