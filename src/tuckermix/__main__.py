"""``python -m tuckermix``: the command line where its script is not on the path."""

from __future__ import annotations

import sys

from tuckermix.cli import main

if __name__ == "__main__":
    sys.exit(main())
