"""``python -m tuckermix.cli``: the same as ``tuckermix``."""

import sys

from tuckermix.cli import main

sys.exit(main())
