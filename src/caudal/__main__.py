"""Make `python -m caudal` run the `caudal` command."""

from caudal.cli.main import main

if __name__ == "__main__":
    main()
