"""Testcontainers for Python and paho-mqtt: the store in a container, for a test in Python.

    pip install testcontainers paho-mqtt && python -m unittest test_store
"""
import json
import os
import queue
import time
import unittest
import urllib.request
import uuid

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from testcontainers.core.container import DockerContainer
from testcontainers.core.waiting_utils import wait_for_logs

IMAGE = os.environ.get("SSCLI_IMAGE", "ghcr.io/sscli/sscli:latest")
SERVE = "serve --listen 0.0.0.0:1883 --no-login --control 0.0.0.0:1884"
REQUESTS = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke"


class StoreTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Start, wait, and the addresses.
        cls.container = DockerContainer(IMAGE).with_command(SERVE).with_exposed_ports(1883, 1884).start()
        wait_for_logs(cls.container, "mqtt://", timeout=60)
        cls.host = cls.container.get_container_host_ip()
        cls.port = int(cls.container.get_exposed_port(1883))
        cls.control_url = f"http://{cls.host}:{cls.container.get_exposed_port(1884)}"

    @classmethod
    def tearDownClass(cls):
        cls.container.stop()

    @classmethod
    def control(cls, path, **body):
        request = urllib.request.Request(cls.control_url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def setUp(self):
        self.control("/reset")
        self.replies, ready = queue.Queue(), queue.Queue()
        self.responses = f"clients/{uuid.uuid4()}/response"
        if hasattr(mqtt, "CallbackAPIVersion"):  # paho 2
            self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        else:
            self.client = mqtt.Client(protocol=mqtt.MQTTv5)
        self.client.on_message = lambda client, data, message: self.replies.put(message.payload)
        self.client.on_subscribe = lambda *_: ready.put(True)
        self.client.on_connect = lambda client, *_: client.subscribe(self.responses, qos=1)
        self.client.connect(self.host, self.port)
        self.client.loop_start()
        ready.get(timeout=60)

    def tearDown(self):
        self.client.disconnect()
        self.client.loop_stop()

    def request(self, *words):
        properties = Properties(PacketTypes.PUBLISH)
        properties.ResponseTopic = self.responses
        properties.CorrelationData = uuid.uuid4().bytes
        properties.UserProperty = [("__ts", f"{time.time_ns() // 1_000_000}:0:{uuid.uuid4()}")]
        payload = f"*{len(words)}\r\n" + "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
        self.client.publish(REQUESTS, payload, qos=1, properties=properties)
        return self.replies.get(timeout=60).decode()

    def test_the_lease_expires(self):
        self.assertEqual(self.request("SET", "lease", "me", "NEX", "PX", "30000"), "+OK\r\n")
        self.assertEqual(self.control("/expire", by="31s"), {"expired": 1})
        self.assertEqual(self.request("GET", "lease"), "$-1\r\n")

    def test_the_store_is_full(self):
        self.control("/faults", verb="SET", error="quota")
        self.assertEqual(self.request("SET", "lease", "me"), "-ERR the quota has been exceeded\r\n")
        with urllib.request.urlopen(self.control_url + "/faults", timeout=60) as answer:
            self.assertEqual([fault["fired"] for fault in json.load(answer)], [1])


if __name__ == "__main__":
    unittest.main()
