"""A process that takes one message and holds it: `python broker_holder.py URL`.

It says `held` and stays; its heartbeats go on, until somebody kills or freezes it.
"""

import sys
import time

from caudal.broker.open_broker import open_broker


def main() -> None:
    consumer = open_broker(sys.argv[1]).consume()
    while consumer.take() is None:
        time.sleep(0.01)
    print("held", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
