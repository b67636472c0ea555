"""The files that the checks in this folder look at: tracked and new ones, not the ignored ones."""
import subprocess
from pathlib import Path, PurePosixPath


def list_files(root):
    """Paths relative to root, sorted. A file that is deleted and not committed so is left out."""
    names = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           check=True, capture_output=True, text=True).stdout.split("\0")
    return [p for p in sorted({PurePosixPath(name) for name in names if name}) if (Path(root) / p).is_file()]
