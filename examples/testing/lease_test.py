#!/usr/bin/env python3
"""An application with a lease, and a test of the lease's expiry that does not wait for it.

    sscli serve --control 127.0.0.1:0 -- python3 lease_test.py

The application needs only paho-mqtt. The test lets the lease expire through the control port of sscli, whose
URL is in SSCLI_CONTROL_URL.
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

REQUESTS = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke"


# The application: a worker that leads while it has the lease.


class Store:
    """The state store of the broker: a request in RESP3, and its reply."""

    def __init__(self, client_id):
        self.responses = f"clients/{client_id}/services/statestore/_any_/command/invoke/response"
        self.replies = queue.Queue()
        ready = queue.Queue()
        if hasattr(mqtt, "CallbackAPIVersion"):  # paho 2
            self.client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id, protocol=mqtt.MQTTv5)
        else:
            self.client = mqtt.Client(client_id, protocol=mqtt.MQTTv5)
        self.client.on_message = lambda client, data, message: self.replies.put(message.payload)
        self.client.on_subscribe = lambda *_: ready.put(True)
        self.client.on_connect = lambda client, *_: client.subscribe(self.responses, qos=1)
        self.client.connect(os.environ["AIO_BROKER_HOSTNAME"], int(os.environ["AIO_BROKER_TCP_PORT"]))
        self.client.loop_start()
        ready.get(timeout=60)

    def request(self, *words):
        properties = Properties(PacketTypes.PUBLISH)
        properties.ResponseTopic = self.responses
        properties.CorrelationData = uuid.uuid4().bytes
        properties.MessageExpiryInterval = 10
        properties.UserProperty = [("__ts", f"{time.time_ns() // 1_000_000:015}:00000:{uuid.uuid4()}")]
        words = [word.encode() for word in words]
        payload = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.client.publish(REQUESTS, payload, qos=1, properties=properties)
        return self.replies.get(timeout=60)

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


class Worker:
    """Leads while it holds the lease, which lasts 30 s and must be renewed."""

    def __init__(self, name):
        self.name, self.store = name, Store(name)

    def lead(self):
        """Takes or renews the lease. Returns whether this worker leads."""
        return self.store.request("SET", "leader", self.name, "NEX", "PX", "30000") == b"+OK\r\n"


# Its test.


def control(path, **body):
    request = urllib.request.Request(
        os.environ["SSCLI_CONTROL_URL"] + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


class LeaseTest(unittest.TestCase):
    def setUp(self):
        control("/reset")
        self.a, self.b = Worker("a"), Worker("b")

    def tearDown(self):
        self.a.store.close()
        self.b.store.close()

    def test_only_one_leads(self):
        self.assertTrue(self.a.lead())
        self.assertFalse(self.b.lead())

    def test_the_lease_expires(self):
        self.assertTrue(self.a.lead())
        control("/expire", by="29s")
        self.assertFalse(self.b.lead())
        control("/expire", by="2s")
        self.assertTrue(self.b.lead())
        self.assertFalse(self.a.lead())

    def test_a_renewal_extends_it(self):
        self.assertTrue(self.a.lead())
        for _ in range(3):
            control("/expire", by="20s")
            self.assertTrue(self.a.lead())
        self.assertFalse(self.b.lead())


if __name__ == "__main__":
    unittest.main()
