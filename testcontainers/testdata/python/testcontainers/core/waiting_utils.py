import time

from testcontainers.core.container import podman


def wait_for_logs(container, text, timeout):
    end = time.monotonic() + timeout
    while text not in podman("logs", container.id):
        if time.monotonic() > end:
            raise TimeoutError(text)
        time.sleep(0.05)
