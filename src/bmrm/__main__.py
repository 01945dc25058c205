"""``python -m bmrm``: the same as the command ``bmrm``."""

from bmrm.cli import main

if __name__ == "__main__":
    main(prog_name="bmrm")
