package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/sscli/sscli/client"
)

// TestFromEnv: client.FromEnv and sscli mean the same by the AIO_ variables.
func TestFromEnv(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, vars := range []string{
		"",
		"AIO_BROKER_HOSTNAME=h",
		"AIO_BROKER_HOSTNAME=h AIO_BROKER_TCP_PORT=1234",
		"AIO_BROKER_HOSTNAME=h AIO_MQTT_USE_TLS=false",
		"AIO_BROKER_HOSTNAME=[::1] AIO_MQTT_USE_TLS=0 AIO_BROKER_TCP_PORT=1234",
		"AIO_BROKER_HOSTNAME=h AIO_MQTT_USE_TLS=perhaps",
		"AIO_BROKER_HOSTNAME=h AIO_BROKER_TCP_PORT=0",
		"AIO_BROKER_HOSTNAME=h AIO_BROKER_TCP_PORT= AIO_SAT_FILE=" + secret,
		"AIO_BROKER_HOSTNAME=h AIO_MQTT_USERNAME=ann AIO_MQTT_PASSWORD_FILE=" + secret,
		"AIO_BROKER_HOSTNAME=h AIO_MQTT_PASSWORD_FILE=" + secret,
		"AIO_BROKER_HOSTNAME=h AIO_MQTT_USERNAME=ann AIO_SAT_FILE=" + secret,
		"AIO_BROKER_HOSTNAME=h AIO_MQTT_PASSWORD_FILE=" + secret + " AIO_SAT_FILE=" + secret,
		"AIO_BROKER_HOSTNAME=h AIO_TLS_CERT_FILE=" + secret,
		"AIO_BROKER_HOSTNAME=h AIO_TLS_KEY_FILE=" + secret,
		"AIO_BROKER_HOSTNAME=h AIO_MQTT_CLIENT_ID=pod",
	} {
		t.Run(vars, func(t *testing.T) {
			env := make(map[string]string)
			for pair := range strings.FieldsSeq(vars) {
				name, value, _ := strings.Cut(pair, "=")
				env[name] = value
				t.Setenv(name, value)
			}
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			Bind(flags)
			want, wantErr := Resolve(flags, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
			if wantErr == nil {
				wantErr = want.Broker()
			}
			got, err := client.FromEnv()
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("got %v, want %v", err, wantErr)
			}
			if err != nil {
				return
			}
			password := ""
			if got.Password != nil {
				text, err := got.Password()
				if password = secret; err != nil || string(text) != "secret" {
					t.Errorf("password %q, %v", text, err)
				}
			}
			prefix := got.ClientID
			if i := strings.LastIndex(prefix, "-"); i >= 0 {
				prefix = prefix[:i]
			}
			if got.Address != want.Address || (got.TLS != nil) != want.TLS || got.Username != want.Username || got.TokenFile != want.SATFile || password != want.PasswordFile || prefix != want.ClientIDPrefix {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
