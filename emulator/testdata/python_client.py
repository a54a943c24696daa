"""A client of Debian's python3-paho-mqtt for conformance_test.go.

    python_client.py HOST PORT VERSION publish TOPIC QOS RETAIN     lines of standard input
    python_client.py HOST PORT VERSION listen ID FILTER QOS LASTING WILL

listen prints "Subscribed", then each message as "MSG payload", until a signal ends it.
WILL is a topic, or empty.
"""
import signal
import sys

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

host, port, version, verb = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
five = version == "5"


def connect(client_id, lasting):
    if five:
        client = mqtt.Client(client_id, protocol=mqtt.MQTTv5)
    else:
        client = mqtt.Client(client_id, clean_session=not lasting, protocol=mqtt.MQTTv311)
    return client


def dial(client, lasting):
    if not five:
        client.connect(host, port)
        return
    properties = Properties(PacketTypes.CONNECT)
    if lasting:
        properties.SessionExpiryInterval = 3600
    client.connect(host, port, clean_start=not lasting, properties=properties)


if verb == "publish":
    topic, qos, retain = sys.argv[5], int(sys.argv[6]), sys.argv[7] == "true"
    client = connect("", False)
    dial(client, False)
    client.loop_start()
    for line in sys.stdin:
        client.publish(topic, line.rstrip("\n"), qos, retain).wait_for_publish(60)
    client.disconnect()
    client.loop_stop()
else:
    client_id, topic_filter, qos, lasting, will = sys.argv[5], sys.argv[6], int(sys.argv[7]), sys.argv[8] == "true", sys.argv[9]
    client = connect(client_id, lasting)
    if will:
        client.will_set(will, "gone", 1)
    client.on_subscribe = lambda *_: print("Subscribed", flush=True)
    client.on_message = lambda _client, _data, message: print("MSG", message.payload.decode(), flush=True)
    client.on_connect = lambda *_: client.subscribe(topic_filter, qos)
    signal.signal(signal.SIGTERM, lambda *_: client.disconnect())
    dial(client, lasting)
    client.loop_forever(retry_first_connection=False)
