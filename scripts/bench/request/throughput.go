package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/sscli/sscli/client/wire"
	"github.com/sscli/sscli/scripts/bench/goal"
)

const throughputRounds = 5

// sequence sends one request after the other, to a stock Mosquitto.
func (b *bench) sequence(ctx context.Context, s *servers, e endpoint) error {
	var ours, peers, ratios []float64
	for range throughputRounds {
		a, err := s.benched(e, 4000, 1)
		if err != nil {
			return err
		}
		z, err := pahoSequence(ctx, e, 40)
		if err != nil {
			return err
		}
		ours, peers, ratios = append(ours, a), append(peers, z), append(ratios, a/z)
	}
	b.report("P5", "gets in sequence per second / paho's", goal.Median(ours), goal.Median(peers), goal.Median(ratios), 100, true)
	return nil
}

// emulator compares the emulator with a Mosquitto whose store is attached.
func (b *bench) emulator(s *servers, own, attached endpoint) error {
	var ours, peers, ratios []float64
	for range throughputRounds {
		a, err := s.benched(own, b.requests, 64)
		if err != nil {
			return err
		}
		z, err := s.benched(attached, b.requests, 64)
		if err != nil {
			return err
		}
		ours, peers, ratios = append(ours, a), append(peers, z), append(ratios, a/z)
	}
	b.report("P8", "emulator / Mosquitto with a store, 64 in flight", goal.Median(ours), goal.Median(peers), goal.Median(ratios), 2.5, true)
	return nil
}

// benched returns the requests per second that `sscli bench` measures.
func (s *servers) benched(e endpoint, requests, inflight int) (float64, error) {
	out, err := s.command(s.sscli, "-u", e.url(), "bench", "-n", strconv.Itoa(requests), "--inflight", strconv.Itoa(inflight),
		"--keys", "100", "--mix", "get", "-o", "json").Output()
	if err != nil {
		return 0, fmt.Errorf("sscli bench: %w", err)
	}
	var result struct {
		PerSecond float64 `json:"per_second"`
	}
	if err := json.Unmarshal(out, &result); err != nil {
		return 0, err
	}
	return result.PerSecond, nil
}

// pahoSequence returns the requests per second of paho's client, one after the other.
func pahoSequence(ctx context.Context, e endpoint, requests int) (perSecond float64, err error) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+e.port)
	if err != nil {
		return 0, err
	}
	answers := make(chan string, 1)
	c := paho.NewClient(paho.ClientConfig{
		ClientID: "bench-paho",
		Conn:     conn,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			answers <- string(p.Packet.Properties.CorrelationData)
			return true, nil
		}},
	})
	if _, err := c.Connect(ctx, &paho.Connect{ClientID: "bench-paho", CleanStart: true, KeepAlive: 60}); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Disconnect(&paho.Disconnect{})) }()
	const topic = "clients/bench-paho/answers"
	if _, err := c.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: topic, QoS: 1}}}); err != nil {
		return 0, err
	}
	begin := time.Now()
	for n := range requests {
		id := fmt.Sprintf("%016d", n)
		_, err := c.Publish(ctx, &paho.Publish{
			QoS: 1, Topic: wire.RequestTopic, Payload: wire.AppendRequest(nil, wire.VerbGet, "k"),
			Properties: &paho.PublishProperties{ResponseTopic: topic, CorrelationData: []byte(id)},
		})
		if err != nil {
			return 0, err
		}
		select {
		case got := <-answers:
			if got != id {
				return 0, fmt.Errorf("answer %s to request %s", got, id)
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return float64(requests) / time.Since(begin).Seconds(), nil
}

// writeCertificate writes one for localhost that is its own CA.
func writeCertificate(certificate, key string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
}
