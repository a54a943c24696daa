#!/usr/bin/env python3
"""Every fault of the control port, as paho-mqtt and redis-py see it.

    sscli serve --redis 127.0.0.1:0 --control 127.0.0.1:0 -- python3 faults_test.py
"""
import json
import os
import queue
import unittest
import urllib.request
import uuid

import paho.mqtt.client as mqtt
import redis
from lease_test import REQUESTS, Store
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties


def control(method, path, body=None):
    request = urllib.request.Request(os.environ["SSCLI_CONTROL_URL"] + path, method=method, headers={"Content-Type": "application/json"})
    request.data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def reset():
    control("POST", "/reset", {"disconnect": True})


def inject(**fault):
    return control("POST", "/faults", fault)


def fast_forward():
    control("POST", "/fast-forward", {"by": "1h"})


class FaultsTest(unittest.TestCase):
    """Each test injects faults, and all of them must have happened when it ends."""

    def setUp(self):
        reset()

    def tearDown(self):
        for fault in control("GET", "/faults"):
            with self.subTest(fault):
                self.assertTrue(fault["over"])
                print(self.id().split(".")[-1], json.dumps(fault))


class MQTT(FaultsTest):
    def setUp(self):
        super().setUp()
        self.store = Store("app")
        self.pubacks = queue.Queue()
        self.store.client.on_publish = lambda *_: self.pubacks.put(True)

    def tearDown(self):
        super().tearDown()
        self.store.close()

    def send(self, *words, via=None):
        store = via or self.store
        properties = Properties(PacketTypes.PUBLISH)
        properties.ResponseTopic = store.responses
        properties.CorrelationData = uuid.uuid4().bytes
        properties.UserProperty = [("__ts", "1:0:app")]
        payload = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)
        store.client.publish(REQUESTS, payload, qos=1, properties=properties)

    def reply(self):
        return self.store.replies.get(timeout=60)

    def only(self, *replies):
        """These replies come, and no other before that to a later request."""
        for want in replies:
            self.assertEqual(self.reply(), want)
        self.assertEqual(self.store.request("GET", "nothing"), b"$-1\r\n")

    def test_drop(self):
        inject(verb="SET", drop="request")
        self.send("SET", "k", "1")
        self.only()
        inject(verb="SET", drop="reply")
        self.send("SET", "k", "2")
        self.only()
        self.assertEqual(self.store.request("GET", "k"), b"$1\r\n2\r\n")

    def test_repeat(self):
        inject(client="app", repeat="reply")
        self.send("SET", "k", "1")
        self.only(b"+OK\r\n", b"+OK\r\n")

    def test_error(self):
        inject(key="k*", error="quota", count=2)
        for _ in range(2):
            self.assertEqual(self.store.request("SET", "k", "1"), b"-ERR the quota has been exceeded\r\n")
        self.assertEqual(self.store.request("SET", "k", "1"), b"+OK\r\n")

    def test_delay(self):
        for name in "delay", "delay_reply":
            inject(key="k", **{name: "1h"})
            self.send("SET", "k", "1")
            while control("GET", "/state")["delayed"] == 0:
                pass
            self.only()
            fast_forward()
            self.assertEqual(self.reply(), b"+OK\r\n")

    def test_ends_of_the_connection(self):
        for fault in {"cut": "before"}, {"cut": "after"}, {"cut_bytes": 3}, {"disconnect": "0x8B"}:
            with self.subTest(fault):
                inject(key="k", **fault)
                victim, gone = Store("victim"), queue.Queue()
                victim.client.reconnect_delay_set(3600, 3600)
                victim.client.on_disconnect = lambda *args: gone.put(args)
                self.send("SET", "k", "1", via=victim)
                gone.get(timeout=60)
                victim.close()
                stored = fault.get("cut") == "after" or "cut_bytes" in fault
                self.assertEqual(self.store.request("DEL", "k"), b":1\r\n" if stored else b":0\r\n")

    def test_stall(self):
        inject(key="k", stall="1h")
        self.assertEqual(self.store.request("SET", "k", "1"), b"+OK\r\n")
        self.send("SET", "k", "2")
        other = Store("other")
        self.assertEqual(other.request("GET", "k"), b"$1\r\n1\r\n")
        other.close()
        fast_forward()
        self.assertEqual(self.reply(), b"+OK\r\n")

    def test_puback(self):
        inject(verb="SET", puback="0x97")
        self.send("SET", "k", "1")
        self.pubacks.get(timeout=60)
        self.only()
        self.assertEqual(self.store.request("GET", "k"), b"$-1\r\n")

    def test_connack(self):
        inject(client="refused", connack="0x97", count=2)
        codes = queue.Queue()
        for _ in range(3):
            refused = mqtt.Client("refused", protocol=mqtt.MQTTv5) if not hasattr(mqtt, "CallbackAPIVersion") else mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "refused", protocol=mqtt.MQTTv5)
            refused.on_connect = lambda client, data, flags, reason, properties: codes.put(reason.value)
            refused.connect(os.environ["AIO_BROKER_HOSTNAME"], int(os.environ["AIO_BROKER_TCP_PORT"]))
            refused.loop_start()
            codes_so_far = codes.get(timeout=60)
            refused.disconnect()
            refused.loop_stop()
        self.assertEqual(codes_so_far, 0)

    def test_notifications(self):
        for key in "k", "end":
            self.assertEqual(self.store.request("KEYNOTIFY", key), b"+OK\r\n")
        heard = queue.Queue()
        self.store.client.message_callback_add("clients/statestore/#", lambda client, data, message: heard.put(message.payload.split(b"\r\n")[-2]))
        for fault in {"drop": "notification"}, {"repeat": "notification"}, {"reorder": "notification"}, {"delay_notification": "1h"}:
            inject(key="k", **fault)
        for value in "dropped", "twice", "late", "delayed":
            self.store.request("SET", "k", value)
        fast_forward()
        self.store.request("SET", "end", "end")
        got = []
        while not got or got[-1] != b"end":
            got.append(heard.get(timeout=60))
        self.assertEqual(got, [b"twice", b"twice", b"delayed", b"late", b"end"])


class Redis(FaultsTest):
    def setUp(self):
        super().setUp()
        self.client = redis.Redis.from_url(os.environ["REDIS_URL"], client_name="app", socket_timeout=60)
        self.client.set("k", "0")

    def tearDown(self):
        super().tearDown()
        self.client.close()

    def raw(self, *words):
        """Sends a command and an ECHO, and returns what comes before the reply to the ECHO."""
        connection = self.client.connection_pool.get_connection("GET")
        try:
            connection.send_command(*words)
            connection.send_command("ECHO", "end")
            replies = []
            while not replies or replies[-1] != b"end":
                try:
                    replies.append(connection.read_response())
                except redis.ResponseError as error:
                    replies.append(str(error))
            return replies[:-1]
        finally:
            connection.disconnect()
            self.client.connection_pool.release(connection)

    def test_replies(self):
        for fault, want, stored in (
            ({"drop": "request"}, [], b"0"),
            ({"drop": "reply"}, [], b"1"),
            ({"repeat": "reply"}, [b"OK", b"OK"], b"2"),
            ({"error": "quota"}, ["the quota has been exceeded"], b"2"),
        ):
            with self.subTest(fault):
                inject(key="k", client="app", verb="SET", **fault)
                value = {b"0": "x", b"1": "1", b"2": "2"}[stored]
                self.assertEqual(self.raw("SET", "k", value), want)
                self.assertEqual(self.client.get("k"), stored)

    def test_delays(self):
        for name in "delay", "delay_reply", "stall":
            with self.subTest(name):
                inject(key="k", **{name: "200ms"})
                self.assertEqual(self.raw("SET", "k", name), [b"OK"])
                self.assertEqual(self.client.get("k"), name.encode())

    def test_cuts(self):
        for fault in {"cut": "before"}, {"cut": "after"}, {"cut_bytes": 2}:
            with self.subTest(fault):
                inject(key="k", **fault)
                with self.assertRaises(redis.ConnectionError):
                    self.raw("SET", "k", "1")

    def test_all_clients_are_disconnected(self):
        connection = self.client.connection_pool.get_connection("GET")
        for path in "/disconnect", "/restart":
            connection.connect()
            control("POST", path, {})
            with self.assertRaises(redis.ConnectionError):
                connection.read_response()
            connection.disconnect()
        self.client.connection_pool.release(connection)

    def test_what_does_not_reach_redis_clients(self):
        for fault in {"puback": "0x97"}, {"connack": "0x97"}, {"drop": "notification"}:
            self.assertEqual(inject(**fault)["reaches"], ["mqtt"])
        reset()


del FaultsTest

if __name__ == "__main__":
    unittest.main()
