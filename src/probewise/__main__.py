"""Entry point of ``python -m probewise``."""

from .cli import main

if __name__ == "__main__":
    main()
