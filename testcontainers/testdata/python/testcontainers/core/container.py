"""Stands in for Testcontainers for Python where it is not installed: what test_store.py uses of it, with podman."""
import subprocess


def podman(*args):
    return subprocess.run(["podman", *args], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.strip()


class DockerContainer:
    def __init__(self, image):
        self.image, self.command, self.ports, self.id = image, "", (), ""

    def with_command(self, command):
        self.command = command
        return self

    def with_exposed_ports(self, *ports):
        self.ports = ports
        return self

    def start(self):
        published = [arg for port in self.ports for arg in ("-p", f"127.0.0.1::{port}")]
        self.id = podman("run", "-d", *published, self.image, *self.command.split()).splitlines()[-1]
        return self

    def stop(self):
        podman("rm", "-f", self.id)

    def get_container_host_ip(self):
        return "127.0.0.1"

    def get_exposed_port(self, port):
        return podman("port", self.id, str(port)).rsplit(":", 1)[1]
