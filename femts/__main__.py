"""`python -m femts`."""

import sys

from femts.cli import main

if __name__ == "__main__":
    sys.exit(main())
