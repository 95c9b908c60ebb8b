"""`python -m trl_reasoning`, also the target of `accelerate launch -m trl_reasoning`."""

import sys

from .cli import main


if __name__ == "__main__":
    sys.exit(main())
