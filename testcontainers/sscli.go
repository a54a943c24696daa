// Package sscli runs the image of sscli in a test: an MQTT broker with a state store, as the one of Azure IoT
// Operations, in a container of Testcontainers.
//
// [Run] starts a container and returns when its store answers. [Container.Env] is the environment with which the
// application under test finds the broker:
//
//	store, err := sscli.Run(ctx, "ghcr.io/sscli/sscli:latest", sscli.WithLoad("testdata/keys"))
//	testcontainers.CleanupContainer(t, store)
//	if err != nil {
//		t.Fatal(err)
//	}
//	env, err := store.Env(ctx)
//
// Without options, the store is empty, anybody may connect without TLS or a login, and the data is lost with the
// container. A Go program that needs no container uses package github.com/sscli/sscli/emulator instead.
package sscli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

const (
	mqttPort    = "1883/tcp"
	controlPort = "1884/tcp"
	redisPort   = "6379/tcp"
)

// A Container is a container that serves a state store.
type Container struct {
	testcontainers.Container
	options options
	dir     string // on this machine, with the files for a login; empty = none
	started atomic.Int32
}

// loginDir is the directory in the container with the CA, its certificates and the token.
const loginDir = "/data/login"

// Run starts a container of the image, such as ghcr.io/sscli/sscli:latest, and waits until its store answers.
//
// Run takes options of this package and of package testcontainers, which it applies last: WithCmdArgs adds
// flags of sscli serve, but none for another address, TLS, another login than WithUsers and WithSAT, or -o, because Run
// waits for a server on port 1883 that prints its URL. As with other modules, the container is not nil if it was
// created but did not become ready.
func Run(ctx context.Context, image string, opts ...testcontainers.ContainerCustomizer) (*Container, error) {
	var o options
	for _, opt := range opts {
		if opt, ok := opt.(Option); ok {
			if err := opt(&o); err != nil {
				return nil, fmt.Errorf("run sscli: %w", err)
			}
		}
	}
	if o.policy && !o.login && o.audience == "" {
		return nil, errors.New("run sscli: WithPolicy without WithUsers or WithSAT: there is no authorization without a login")
	}
	if o.tls {
		host, err := daemonHost(ctx)
		if err != nil {
			return nil, fmt.Errorf("run sscli: %w", err)
		}
		o.args = append(o.args, "--self-signed-names", host)
	}
	created, err := testcontainers.Run(ctx, image, append(o.request(), opts...)...)
	if created == nil {
		return nil, fmt.Errorf("run sscli: %w", err)
	}
	c := &Container{Container: created, options: o}
	if err == nil {
		err = c.copyOut(ctx)
	}
	if err != nil {
		return c, fmt.Errorf("run sscli: %w", err)
	}
	return c, nil
}

// daemonHost returns the name by which clients on this machine reach the ports of containers.
func daemonHost(ctx context.Context) (string, error) {
	provider, err := testcontainers.ProviderDefault.GetProvider()
	if err != nil {
		return "", err
	}
	defer func() { _ = provider.Close() }()
	if docker, ok := provider.(*testcontainers.DockerProvider); ok {
		return docker.DaemonHost(ctx)
	}
	return "localhost", nil
}

// copyOut copies what clients need for the login to a directory on this machine, which Terminate removes.
func (c *Container) copyOut(ctx context.Context) (err error) {
	names := []string{}
	if c.options.tls {
		names = append(names, "ca.crt")
	}
	if c.options.audience != "" {
		names = append(names, "token")
	}
	if len(names) == 0 {
		return nil
	}
	if c.dir, err = os.MkdirTemp("", "sscli-login-"); err != nil {
		return err
	}
	for _, name := range names {
		from, err := c.CopyFileFromContainer(ctx, path.Join(loginDir, name))
		if err != nil {
			return err
		}
		text, err := io.ReadAll(from)
		if err := errors.Join(err, from.Close(), os.WriteFile(filepath.Join(c.dir, name), text, 0o600)); err != nil {
			return err
		}
	}
	return nil
}

// Terminate ends and removes the container, and the files of CAFile and SATFile.
func (c *Container) Terminate(ctx context.Context, opts ...testcontainers.TerminateOption) error {
	err := c.Container.Terminate(ctx, opts...)
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// CAFile returns the name of a file on this machine with the CA of the broker's certificate, or "" without [WithTLS].
func (c *Container) CAFile() string { return c.file(c.options.tls, "ca.crt") }

// SATFile returns the name of a file on this machine with a service-account token, or "" without [WithSAT].
func (c *Container) SATFile() string { return c.file(c.options.audience != "", "token") }

func (c *Container) file(on bool, name string) string {
	if !on || c.dir == "" {
		return ""
	}
	return filepath.Join(c.dir, name)
}

// secure returns a scheme with an s at its end, if the ports speak TLS.
func (c *Container) secure(scheme string) string {
	if c.options.tls {
		scheme += "s"
	}
	return scheme
}

// URL returns the URL of the broker, mqtt://HOST:PORT or, with [WithTLS], mqtts://HOST:PORT.
func (c *Container) URL(ctx context.Context) (string, error) {
	return c.PortEndpoint(ctx, mqttPort, c.secure("mqtt"))
}

// RedisURL returns the URL for Redis clients, redis://HOST:PORT. It requires [WithRedis].
func (c *Container) RedisURL(ctx context.Context) (string, error) {
	if !c.options.redis {
		return "", errors.New("the container has no port for Redis clients: use WithRedis")
	}
	return c.PortEndpoint(ctx, redisPort, c.secure("redis"))
}

// ControlURL returns the URL of the port on which tests move the clock and inject faults, http://HOST:PORT. It
// requires [WithControl].
func (c *Container) ControlURL(ctx context.Context) (string, error) {
	if !c.options.control {
		return "", errors.New("the container has no control port: use WithControl")
	}
	return c.PortEndpoint(ctx, controlPort, "http")
}

// Env returns the variables by which clients on this machine find the broker: AIO_BROKER_HOSTNAME,
// AIO_BROKER_TCP_PORT, AIO_MQTT_USE_TLS and AIO_MQTT_CLEAN_START for the SDKs of Azure IoT Operations, SSCLI_URL for
// sscli, REDIS_URL with [WithRedis], SSCLI_CONTROL_URL with [WithControl], AIO_TLS_CA_FILE and SSCLI_CA_FILE with
// [WithTLS], and AIO_SAT_FILE and SSCLI_SAT_FILE with [WithSAT].
func (c *Container) Env(ctx context.Context) (map[string]string, error) {
	host, err := c.Host(ctx)
	if err != nil {
		return nil, err
	}
	port, err := c.MappedPort(ctx, mqttPort)
	if err != nil {
		return nil, err
	}
	env := map[string]string{
		"AIO_BROKER_HOSTNAME":  host,
		"AIO_BROKER_TCP_PORT":  port.Port(),
		"AIO_MQTT_USE_TLS":     strconv.FormatBool(c.options.tls),
		"AIO_MQTT_CLEAN_START": "true",
	}
	for name, file := range map[string]string{"AIO_TLS_CA_FILE": c.CAFile(), "SSCLI_CA_FILE": c.CAFile(), "AIO_SAT_FILE": c.SATFile(), "SSCLI_SAT_FILE": c.SATFile()} {
		if file != "" {
			env[name] = file
		}
	}
	for _, v := range []struct {
		name string
		on   bool
		url  func(context.Context) (string, error)
	}{
		{"SSCLI_URL", true, c.URL}, {"REDIS_URL", c.options.redis, c.RedisURL}, {"SSCLI_CONTROL_URL", c.options.control, c.ControlURL},
	} {
		if !v.on {
			continue
		}
		if env[v.name], err = v.url(ctx); err != nil {
			return nil, err
		}
	}
	return env, nil
}

// A Store is another store in a [Container].
type Store struct {
	URL        string // of its broker: mqtt://HOST:PORT or, with [WithTLS], mqtts://HOST:PORT
	ControlURL string // of its part of the control port
}

// storePort returns the port of the ith store that NewStore starts.
func storePort(i int) string { return strconv.Itoa(20000+i) + "/tcp" }

// NewStore starts another store in the container, with a clock, faults, topics and sessions of its own, and the keys of
// [WithLoad]. It requires [WithStores], which says how many there can be. The name, of letters, digits, _ and -, must be
// new.
func (c *Container) NewStore(ctx context.Context, name string) (Store, error) {
	i := int(c.started.Add(1)) - 1
	if i >= c.options.stores {
		return Store{}, fmt.Errorf("new store %q: the container has ports for %d: see WithStores", name, c.options.stores)
	}
	control, err := c.ControlURL(ctx)
	if err != nil {
		return Store{}, err
	}
	body := fmt.Sprintf(`{"name": %q, "listen": "0.0.0.0:%d"}`, name, 20000+i)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, control+"/stores", strings.NewReader(body))
	if err != nil {
		return Store{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return Store{}, fmt.Errorf("new store %q: %w", name, err)
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(reply.Body)
		return Store{}, fmt.Errorf("new store %q: %s", name, strings.TrimSpace(string(text)))
	}
	url, err := c.PortEndpoint(ctx, storePort(i), c.secure("mqtt"))
	return Store{url, control + "/stores/" + name}, err
}

// An Option is an option of [Run].
type Option func(*options) error

var _ testcontainers.ContainerCustomizer = Option(nil)

// Customize does nothing: Run makes a request from all options together.
func (Option) Customize(*testcontainers.GenericContainerRequest) error { return nil }

type options struct {
	args                          []string // flags with sources that are copied into the container
	files                         []testcontainers.ContainerFile
	sources                       int
	volume                        string
	login, policy, redis, control bool
	tls                           bool
	audience                      string
	stores                        int
}

// WithLoad sets keys before the first client connects. Each source is a file or a directory on this machine of which
// sscli apply makes keys: a directory with a file for each key, what sscli export wrote, a data set, a manifest.
func WithLoad(sources ...string) Option {
	return func(o *options) error {
		for _, source := range sources {
			if err := o.copyIn("--load", source); err != nil {
				return err
			}
		}
		return nil
	}
}

// WithUsers requires a login. The file has a line NAME:PASSWORD for each user who may log in, as for sscli serve
// --users.
func WithUsers(file string) Option {
	return func(o *options) error {
		o.login = true
		return o.copyIn("--users", file)
	}
}

// WithTLS serves TLS, with a certificate of a CA that is made for it: see [Container.CAFile].
func WithTLS() Option {
	return func(o *options) error {
		o.tls = true
		return nil
	}
}

// WithSAT requires service-account tokens for this audience, such as aio-internal. [Container.SATFile] has one, which is
// valid for a day. With [WithUsers], either is enough.
func WithSAT(audience string) Option {
	return func(o *options) error {
		o.audience = audience
		return nil
	}
}

// WithPolicy decides by the rules of these files, each with a BrokerAuthorization, what clients may do. It requires
// [WithUsers] or [WithSAT].
func WithPolicy(files ...string) Option {
	return func(o *options) error {
		o.policy = true
		for _, file := range files {
			if err := o.copyIn("--policy", file); err != nil {
				return err
			}
		}
		return nil
	}
}

// WithData keeps the store in a volume of this name, which is created if it does not exist. It survives the
// container, and is there for the next one.
func WithData(volume string) Option {
	return func(o *options) error {
		o.volume = volume
		return nil
	}
}

// WithRedis lets Redis clients use the same store.
func WithRedis() Option {
	return func(o *options) error {
		o.redis = true
		return nil
	}
}

// WithControl opens a port on which a test resets the store, lets keys expire, injects faults and starts more stores, for
// which nobody has to log in.
func WithControl() Option {
	return func(o *options) error {
		o.control = true
		return nil
	}
}

// WithStores lets [Container.NewStore] start up to n more stores in the container, for tests that run in parallel. It
// includes [WithControl].
func WithStores(n int) Option {
	return func(o *options) error {
		o.control, o.stores = true, n
		return nil
	}
}

// copyIn adds a flag whose value is a file or a directory, which is copied into the container. Each has a directory
// of its own, so that neither files of the image nor other copies have its name.
func (o *options) copyIn(flag, source string) error {
	source, err := filepath.Abs(source)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	to := path.Join("/tests", strconv.Itoa(o.sources), filepath.Base(source))
	if source, err = filepath.EvalSymlinks(source); err != nil { // WalkDir does not follow a link
		return fmt.Errorf("%s: %w", flag, err)
	}
	o.sources++
	o.args = append(o.args, flag, to)
	// A container file that is a directory would be copied under its own name, and its parent must exist.
	before := len(o.files)
	err = filepath.WalkDir(source, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// A link stands for what it leads to, as in the directories that Kubernetes makes of a ConfigMap.
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return nil
		}
		below, err := filepath.Rel(source, name)
		if err != nil {
			return err
		}
		o.files = append(o.files, testcontainers.ContainerFile{
			HostFilePath: name, ContainerFilePath: path.Join(to, filepath.ToSlash(below)), FileMode: 0o644,
		})
		return nil
	})
	if err == nil && len(o.files) == before {
		err = fmt.Errorf("%s has no files", source)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// request returns the request that these options make.
func (o *options) request() []testcontainers.ContainerCustomizer {
	args := []string{"serve", "--listen", "0.0.0.0:1883"}
	ports := []string{mqttPort}
	ping := []string{"/usr/bin/sscli", "ping", "-u", "mqtt://127.0.0.1:1883", "-n", "1", "-q", "--alive", "--wait", "30s"}
	login := o.login || o.audience != ""
	if !login {
		args = append(args, "--no-login")
	}
	if o.tls {
		args = append(args, "--self-signed", loginDir)
		ping = append(ping, "-u", "mqtts://127.0.0.1:1883", "--ca-file", loginDir+"/ca.crt")
	}
	if o.audience != "" {
		args = append(args, "--sat-audience", o.audience, "--sat-out", loginDir+"/token", "--sat-ttl", "24h")
	}
	if o.redis {
		args = append(args, "--redis", "0.0.0.0:6379")
		if !login {
			args = append(args, "--redis-insecure")
		}
		ports = append(ports, redisPort)
	}
	if o.control {
		args = append(args, "--control", "0.0.0.0:1884", "--control-insecure")
		ports = append(ports, controlPort)
	}
	for i := range o.stores {
		ports = append(ports, storePort(i))
	}
	request := []testcontainers.ContainerCustomizer{
		testcontainers.WithExposedPorts(ports...),
		testcontainers.WithFiles(o.files...),
		testcontainers.WithWaitStrategy(
			// serve prints its URL when it is ready. If it ends instead, this says so at once.
			wait.ForLog(`(?m)^mqtts?://`).AsRegexp(),
			// The log of a container that was stopped and started again already has an URL.
			wait.ForExec(ping),
		),
	}
	if o.volume != "" {
		args = append(args, "--data", "/data/store")
		request = append(request, testcontainers.WithMounts(testcontainers.VolumeMount(o.volume, "/data")))
	}
	return append(request, testcontainers.WithCmd(append(args, o.args...)...))
}
