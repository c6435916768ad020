"""`python -m interlock`."""

from interlock.cli.main import run

if __name__ == "__main__":
    run()
