"""``python -m infocal`` is the same as ``infocal``."""

from infocal.cli import main

if __name__ == "__main__":
    main(prog_name="infocal")
