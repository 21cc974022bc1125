"""`python -m spanwise.cli`."""

import sys

from spanwise.cli import main

sys.exit(main())
