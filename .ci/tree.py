"""A small git tree in a temporary folder, for the tests of the checks in this folder. Not used by the checks."""
import subprocess
import tempfile
from pathlib import Path


class Tree:
    """with Tree({"src/a.h": "text"}) as root: ... ; the folder is gone afterwards."""

    def __init__(self, files):
        self.files = files

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        root = Path(self.folder.name)
        subprocess.run(["git", "init", "-q", root], check=True)
        for name, text in self.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(text.encode())
        return str(root)

    def __exit__(self, *_):
        self.folder.cleanup()
