"""``python -m jupyter_gpucluster VERB`` is ``jupyter gpucluster VERB``."""

from __future__ import annotations

import sys

from .cli import main

sys.exit(main())
