"""Which documents of an index are certainly no longer in the folders that it was made of."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from precise_rag.documents import FileReport


def proven_gone(
    gone: Sequence[str], paths: Sequence[Path], reports: Iterable[FileReport], *, all_read: bool
) -> list[str]:
    """Return those documents whose file is not there any more, or was read or skipped without them.

    gone: ids in the index that reading did not give. paths: what was read. reports: of the files.
    all_read: whether everything could be read; then all are gone. A path that is missing itself, as a drive
        may be, proves nothing, and neither does a pattern.
    """
    if all_read:
        return list(gone)
    if not all(map(os.path.lexists, paths)):
        return []
    settled = {report.path for report in reports if report.status != "failed"}
    folders = [path for path in paths if path.is_dir()]
    bases = [path.parent for path in paths if not path.is_dir()]
    bases += folders if len(folders) == 1 else [Path()]
    return [
        one for one in gone if not any(_may_be_in(base / one.partition("#")[0], settled) for base in bases)
    ]


def _may_be_in(file: Path, settled: set[str]) -> bool:
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return not any(str(place) in settled for place in (file, *file.parents))
