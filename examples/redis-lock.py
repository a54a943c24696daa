#!/usr/bin/env python3
"""Do something that only one process may do at a time, from a language without an SDK.

    redis-lock.py LOCK KEY VALUE

Waits for the lock LOCK, sets KEY to VALUE with the lock's fencing token, and releases the
lock. If this process is stopped for so long that another one acquires the lock and writes KEY,
the store refuses this process's write. REDIS_URL is the port of `sscli serve --redis`, or
of `sscli gateway`. Requires redis-py.
"""

import os
import sys
import uuid

import redis

TTL_MS = 10_000


def acquire(store: redis.Redis, lock: str, holder: str) -> str:
    """Wait for a lock, and return its fencing token: the version of the key."""
    with store.pubsub() as events:
        # Subscribe before the first try, so that no release is missed. Messages can be lost:
        # try now and then without one, too.
        events.subscribe(f"__keyspace@0__:{lock}")
        while True:
            status, version = store.execute_command("SS.SET", lock, holder, "NEX", "PX", TTL_MS)
            if status == "OK":
                return version
            print(f"waiting for {lock}", file=sys.stderr)
            events.get_message(ignore_subscribe_messages=True, timeout=1)


def main() -> int:
    if len(sys.argv) != 4:
        print("redis-lock.py: want LOCK KEY VALUE", file=sys.stderr)
        return 2
    lock, key, value = sys.argv[1:]
    store = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
    holder = f"python-{uuid.uuid4()}"  # no two processes may share one
    token = acquire(store, lock, holder)
    try:
        status, version = store.execute_command("SS.SET", key, value, "FT", token)
    except redis.ResponseError as refused:
        print(f"{key} was not set: {refused}", file=sys.stderr)
        return 1
    finally:
        # Deletes the lock only if it is still ours.
        store.execute_command("SS.VDEL", lock, holder)
    print(f"{key} is {value}")
    return 0 if status == "OK" else 1


if __name__ == "__main__":
    sys.exit(main())
