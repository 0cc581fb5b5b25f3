"""The order of the tutorials."""

from pathlib import Path

TUTORIALS = (
    "one_command",
    "folder_of_images",
    "choosing_k",
    "features",
    "photographs",
    "notebook",
    "volumes_and_videos",
    "hyperspectral",
    "more_than_memory",
    "gpu",
)


class ReadingOrder:
    """Sort tutorials as one would read them; one that is not listed is an error."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, name):
        """Return the place of a file."""
        return TUTORIALS.index(Path(name).stem)

    def __repr__(self):
        return "ReadingOrder"  # a part of the settings that Sphinx compares
