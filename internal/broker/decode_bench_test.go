package broker

import (
	"bytes"
	"testing"

	"github.com/eclipse/paho.golang/packets"
)

// BenchmarkDecodePublish decodes a request as sent by our client and the SDKs.
func BenchmarkDecodePublish(b *testing.B) {
	const topic, id = "statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8/command/invoke", "bench-client"
	var body bytes.Buffer
	request := &packets.Publish{Topic: topic, QoS: 1, PacketID: 7, Payload: bytes.Repeat([]byte("x"), 100), Properties: &packets.Properties{
		MessageExpiry: number(uint32(10)), ContentType: "application/octet-stream", CorrelationData: []byte("0123456789abcdef"),
		ResponseTopic: "clients/" + id + "/services/statestore/_any_/command/invoke/response",
		User:          []packets.User{{Key: "__ts", Value: "001763780000000:00000:" + id}, {Key: "__srcId", Value: id}, {Key: "__protVer", Value: "1.0"}, {Key: "$partition", Value: id}},
	}}
	for _, part := range request.Buffers() {
		body.Write(part)
	}
	var p Publish
	b.ReportAllocs()
	for b.Loop() {
		if err := p.decode(version5, typePublish<<4|2, body.Bytes(), topic); err != nil {
			b.Fatal(err)
		}
	}
}
