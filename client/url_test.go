package client_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sscli/sscli/client"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"mqtt://h":                      `h:1883 tls=false "" ""`,
		"MQTTS://ann@h":                 `h:8883 tls=true "" "ann"`,
		"mqtt://[::1]:5":                `[::1]:5 tls=false "" ""`,
		"ws://h":                        `h:80 tls=false "/mqtt" ""`,
		"wss://h/":                      `h:443 tls=true "/" ""`,
		"wss://h:1/a?b=c":               `h:1 tls=true "/a?b=c" ""`,
		"h:1883":                        `scheme "h": expected mqtt://, mqtts://, ws:// or wss://`,
		"mqtt://":                       "no host: expected mqtt://host:port or mqtts://host:port",
		"mqtt://h/path":                 "unexpected text after the host: expected mqtt://host:port or mqtts://host:port",
		"ws://h/#f":                     "a fragment (#…) is never sent: expected ws://host:port/path",
		"mqtt://h:0":                    `"0": must be a port of 1 to 65535`,
		"mqtt://h:65536":                `"65536": must be a port of 1 to 65535`,
		"mqtt://h%20":                   "not a URL: expected mqtt://host:port or mqtts://host:port",
		"mqtt://a%00b@h":                `bad user name "a\x00b": expected UTF-8 without NUL`,
		"mqtt://a%ffb@h":                `bad user name "a\xffb": expected UTF-8 without NUL`,
		"mqtt://ann:secret@h":           "a password in a URL is visible to others",
		"mqtt://ann:secret@h:not-port/": "not a URL: expected mqtt://host:port or mqtts://host:port",
	} {
		o, err := client.ParseURL(text)
		got := fmt.Sprintf("%s tls=%t %q %q", o.Address, o.TLS != nil, o.WebSocket, o.Username)
		if err != nil {
			as[*client.InvalidError](t, err)
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// FuzzParseURL: options from a URL have a port to dial, make a session or are refused, and the same URL with
// its parts written out gives the same options; an error has no password.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{"mqtt://h", "mqtts://ann@h:1", "ws://[::1]/p?q", "wss://h:443", "mqtt://ann:secret@h", "mqtt://h%41"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := client.ParseURL(text)
		if err != nil {
			if u, e := url.Parse(text); e == nil && u.User != nil {
				if secret, _ := u.User.Password(); len(secret) > 20 && strings.Contains(err.Error(), secret) {
					t.Errorf("the password is in %v", err)
				}
			}
			return
		}
		host, port, err := net.SplitHostPort(o.Address)
		if p, e := strconv.Atoi(port); err != nil || host == "" || e != nil || p < 1 || p > 65535 {
			t.Fatalf("address %q", o.Address)
		}
		s, err := client.New(o)
		if err != nil {
			t.Fatalf("%q: no session: %v", text, err)
		}
		s.Close()
		again := url.URL{Scheme: "mqtt", Host: o.Address}
		if o.WebSocket != "" {
			again.Scheme = "ws"
		}
		if o.TLS != nil {
			again.Scheme += "s"
		}
		if o.Username != "" {
			again.User = url.User(o.Username)
		}
		same, err := client.ParseURL(again.String() + o.WebSocket)
		if err != nil || same.Address != o.Address || same.WebSocket != o.WebSocket || same.Username != o.Username || (same.TLS == nil) != (o.TLS == nil) {
			t.Errorf("%q gives %+v, but %q gives %+v, %v", text, o, again.String()+o.WebSocket, same, err)
		}
	})
}

func ExampleParseURL() {
	store := broker()
	defer store.Close()

	o, err := client.ParseURL(store.URL()) // such as mqtts://user@broker.example
	if err != nil {
		panic(err)
	}
	s, err := client.New(o)
	if err != nil {
		panic(err)
	}
	defer s.Close()
	get, err := s.Get(context.Background(), "setpoint")
	fmt.Println(get.Found, err)
	// Output: false <nil>
}

// In a container of a workload, the environment says where the broker is and how to log in.
func ExampleFromEnv() {
	os.Setenv("AIO_BROKER_HOSTNAME", "aio-broker") // Azure IoT Operations sets the variables
	os.Setenv("AIO_SAT_FILE", "/var/run/secrets/tokens/broker-sat")
	defer os.Unsetenv("AIO_BROKER_HOSTNAME")
	defer os.Unsetenv("AIO_SAT_FILE")

	o, err := client.FromEnv()
	fmt.Println(o.Address, o.TLS != nil, o.TokenFile, err)
	// Output: aio-broker:8883 true /var/run/secrets/tokens/broker-sat <nil>
}

func TestFromEnvErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, vars := range []map[string]string{
		{},
		{"AIO_BROKER_HOSTNAME": "h:1883"},
		{"AIO_BROKER_HOSTNAME": "mqtt://h"},
		{"AIO_BROKER_HOSTNAME": "h "},
		{"AIO_BROKER_HOSTNAME": "[]"},
		{"AIO_BROKER_HOSTNAME": "h", "AIO_MQTT_USERNAME": "\xff"},
		{"AIO_BROKER_HOSTNAME": "h", "AIO_MQTT_USE_TLS": "perhaps"},
		{"AIO_BROKER_HOSTNAME": "h", "AIO_BROKER_TCP_PORT": "mqtt"},
		{"AIO_BROKER_HOSTNAME": "h", "AIO_TLS_CA_FILE": missing},
		{"AIO_BROKER_HOSTNAME": "h", "AIO_TLS_CERT_FILE": missing},
		{"AIO_BROKER_HOSTNAME": "h", "AIO_TLS_KEY_FILE": missing},
		{"AIO_BROKER_HOSTNAME": "h", "AIO_TLS_CERT_FILE": missing, "AIO_TLS_KEY_FILE": missing},
		{"AIO_BROKER_HOSTNAME": "h", "AIO_MQTT_PASSWORD_FILE": missing},
		{"AIO_BROKER_HOSTNAME": "h", "AIO_MQTT_PASSWORD_FILE": missing, "AIO_SAT_FILE": missing},
	} {
		t.Run("", func(t *testing.T) {
			for name, value := range vars {
				t.Setenv(name, value)
				if os.Getenv(name) != value {
					t.Skip("the system's environment has no such bytes")
				}
			}
			_, err := client.FromEnv()
			if as[*client.InvalidError](t, err); !strings.Contains(err.Error(), "AIO_") {
				t.Errorf("%v: %v", vars, err)
			}
		})
	}
}
