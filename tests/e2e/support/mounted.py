"""A folder as a kubelet mounts a ConfigMap or a Secret there: each name is a link through `..data`, which one rename leads to the next folder."""

import itertools
import shutil


class Mounted:
    def __init__(self, folder, files):
        self.folder, self._names = folder, itertools.count()
        folder.mkdir(parents=True)
        self.replace(files)
        for name in {path.split("/")[0] for path in files}:
            (folder / name).symlink_to(f"..data/{name}")

    def __truediv__(self, name):
        return self.folder / name

    def replace(self, files):
        """All files at once, as after a change of the object. The folder before is removed."""
        data, aside = self.folder / "..data", self.folder / "..data_tmp"
        before = data.resolve() if data.is_symlink() else None
        following = self.folder / f"..2026_11_27_{next(self._names):06}"
        for path, contents in files.items():
            (following / path).parent.mkdir(parents=True, exist_ok=True)
            (following / path).write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        aside.symlink_to(following.name)
        aside.rename(data)
        if before:
            shutil.rmtree(before)
