package doctor

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sscli/sscli/cmd/sscli/internal/via"
	"github.com/sscli/sscli/format"
)

// cluster checks each step of --via: kubectl, the cluster, the service, the forward, and the CA and
// the token from the cluster.
func (c *checkup) cluster(ctx context.Context) error {
	way := c.a.Cluster
	if way == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	for _, check := range []struct {
		name string
		run  func(context.Context, *via.Way, *format.Check) error
	}{
		{"kubectl", c.kubectl}, {"cluster", c.apiServer}, {"service", c.service}, {"forward", c.forward}, {"ca", c.clusterCA}, {"token", c.clusterToken},
	} {
		result := format.Check{Name: check.name, Status: format.Pass}
		began := time.Now()
		if err := check.run(limited, way, &result); err != nil {
			return c.fail(ctx, check.name, err)
		}
		result.Took = time.Since(began).Round(time.Microsecond)
		if err := c.print(result); err != nil {
			return err
		}
	}
	return nil
}

// A version is what kubectl and the API server report about themselves. Version is empty if the
// output could not be parsed.
type version struct {
	Version string `json:"gitVersion"`
}

// kubectl checks that kubectl is installed, shows its version, and warns if it is older than 1.24.
func (c *checkup) kubectl(ctx context.Context, way *via.Way, check *format.Check) error {
	out, err := way.Kubectl(ctx, "version", "--client", "--output=json")
	var local struct {
		Client version `json:"clientVersion"`
	}
	_ = json.Unmarshal(out, &local)
	check.Message = local.Client.Version
	var major, minor int
	if n, _ := fmt.Sscanf(local.Client.Version, "v%d.%d", &major, &minor); n == 2 && (major < 1 || major == 1 && minor < 24) {
		check.Status = format.Warn
		check.Message += ": kubectl create token needs 1.24 or newer"
		check.Hint = "install a newer kubectl, or use a login of your own with --sat-file, --username or --cert-file"
	}
	return err
}

func (c *checkup) apiServer(ctx context.Context, way *via.Way, check *format.Check) error {
	out, err := way.Kubectl(ctx, "get", "--raw", "/version")
	var server version
	_ = json.Unmarshal(out, &server)
	check.Message = strings.TrimSpace("the API server answers, Kubernetes " + server.Version)
	return err
}

func (c *checkup) service(ctx context.Context, way *via.Way, check *format.Check) error {
	v := c.a.Settings.Via
	out, err := way.Kubectl(ctx, "get", v.Resource, "--output=name")
	check.Message = fmt.Sprintf("%s in the namespace %s", strings.TrimSpace(string(out)), v.Namespace)
	return err
}

// forward checks that the user is allowed to forward ports, and that a pod is ready.
func (c *checkup) forward(ctx context.Context, way *via.Way, check *format.Check) error {
	check.Message = "kubectl port-forward is ready, to port " + c.a.Settings.Via.Port
	return way.Open(ctx)
}

// clusterCA reads the broker's CAs from the cluster. It warns if one of them has expired.
func (c *checkup) clusterCA(ctx context.Context, way *via.Way, check *format.Check) error {
	s := c.a.Settings
	if s.ClusterCA() == "" {
		check.Status, check.Message = format.Skip, "no CA of the cluster is needed"
		return nil
	}
	list, err := way.Authorities(ctx)
	check.Message = "the config map " + s.ClusterCA()
	authorities(check, list, time.Now())
	return err
}

// authorities adds CAs to a check. It warns if one of them has expired.
func authorities(check *format.Check, list []*x509.Certificate, now time.Time) {
	for _, ca := range list {
		check.Facts = append(check.Facts, format.Fact{Name: "CA", Value: fmt.Sprintf("%s, to %s", ca.Subject, ca.NotAfter.UTC().Format(time.DateOnly))})
		if now.After(ca.NotAfter) {
			check.Status, check.Hint = format.Warn, "renew the CA of the broker, or use --ca-file with another one"
			check.Message += fmt.Sprintf("; the CA %q expired at %s", ca.Subject, ca.NotAfter.UTC().Format(time.RFC3339))
		}
	}
}

func (c *checkup) clusterToken(ctx context.Context, way *via.Way, check *format.Check) error {
	account := c.a.Settings.ClusterAccount()
	if account == "" {
		check.Status, check.Message = format.Skip, "no token of the cluster is needed"
		return nil
	}
	token, err := way.Token(ctx)
	if err != nil {
		return err
	}
	check.Message = "of the service account " + account
	claims := jwt.RegisteredClaims{}
	if _, _, err := jwt.NewParser().ParseUnverified(string(token), &claims); err != nil {
		check.Status = format.Warn
		check.Message += ", but it is not a JSON Web Token"
		return nil
	}
	check.Facts = append(check.Facts, format.Fact{Name: "audience", Value: strings.Join(claims.Audience, ", ")})
	if claims.ExpiresAt != nil {
		check.Facts = append(check.Facts, format.Fact{Name: "expires", Value: claims.ExpiresAt.UTC().Format(time.RFC3339)})
	}
	return nil
}
