// Package apiservertest is a small Kubernetes API server for tests with the real kubectl. It serves
// one namespace with one broker:
//
//	api := apiservertest.Start(t, apiservertest.Options{Broker: address, CA: pem, Token: issue})
//	cmd.Env = append(os.Environ(), api.Env()...)
//	api.DeletePod()
//
// It serves these kubectl commands: version, get of one object by name, create token, and
// port-forward to a service, a pod or a deployment, over SPDY/3.1 and over WebSocket. Every
// port-forward connects to the broker and ignores the requested port. The methods and
// fields of [Server] simulate faults of a cluster.
package apiservertest

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

// The names of the objects in the cluster. The service and the deployment select the pod.
const (
	Namespace = "azure-iot-operations"
	Service   = "aio-broker" // also the name of the deployment
	Pod       = "aio-broker-frontend-0"
	ConfigMap = "azure-iot-operations-aio-ca-trust-bundle"
	Account   = "default"
)

// Audience is the only audience that the server creates tokens for.
const Audience = "aio-internal"

// User is the name of the user that kubectl logs in as.
const User = "ann"

// userToken is the token of User in the kubeconfig file.
const userToken = "token-of-ann"

// Options configure a [Server].
type Options struct {
	Broker string                               // address that port-forwards connect to
	CA     string                               // the value of ca-bundle.crt in the config map
	Token  func(account string) (string, error) // creates a token for Audience
}

// A Server is an API server. Its methods may be called concurrently.
type Server struct {
	LoggedOut atomic.Bool  // refuse the user's token, as if it had expired
	Silent    atomic.Bool  // make new port-forwards discard all bytes
	Delay     atomic.Int64 // delay before a port-forward starts, as a time.Duration

	o          Options
	kubeconfig string
	http       *httptest.Server
	running    sync.WaitGroup // counts the port-forwards
	closing    sync.Once
	closed     chan struct{} // closed when the server ends

	mu        sync.Mutex
	ca        string
	created   chan struct{}   // closed while the pod exists
	forbidden map[string]bool // by "VERB RESOURCE"
	forwards  map[*forward]bool
	requests  map[string]int // number of requests, by "VERB RESOURCE"
}

// Kubectl returns the first kubectl in the directories of path. If there is none, it skips the test.
func Kubectl(t *testing.T, path string) string {
	t.Helper()
	for _, dir := range filepath.SplitList(path) {
		if program, err := exec.LookPath(filepath.Join(dir, "kubectl")); err == nil {
			return program
		}
	}
	t.Skip("kubectl is not installed")
	return ""
}

// Start starts a server that ends with the test.
func Start(t *testing.T, o Options) *Server {
	t.Helper()
	s := &Server{
		o: o, ca: o.CA, created: make(chan struct{}), closed: make(chan struct{}),
		forbidden: make(map[string]bool), forwards: make(map[*forward]bool), requests: make(map[string]int),
	}
	close(s.created)
	s.http = httptest.NewUnstartedServer(s.handler())
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // killed kubectl processes would fill the log with errors
	s.http.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
	text, err := json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "lab",
		"clusters": []object{{"name": "lab", "cluster": object{"server": s.http.URL, "certificate-authority-data": ca}}},
		"users":    []object{{"name": User, "user": object{"token": userToken}}},
		"contexts": []object{{"name": "lab", "context": object{"cluster": "lab", "user": User}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(s.kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// Env returns the environment variables that make kubectl use the server and keep its caches in the directory
// of the kubeconfig file.
func (s *Server) Env() []string {
	dir := filepath.Dir(s.kubeconfig)
	return []string{"KUBECONFIG=" + s.kubeconfig, "HOME=" + dir, "KUBECACHEDIR=" + filepath.Join(dir, "cache")}
}

// Close ends the server and the port-forwards through it.
func (s *Server) Close() {
	s.closing.Do(func() {
		close(s.closed)
		s.closeForwards()
		s.http.CloseClientConnections()
		s.http.Close()
	})
	s.running.Wait()
}

// DeletePod deletes the pod. Port-forwards to it end.
func (s *Server) DeletePod() {
	s.mu.Lock()
	s.created = make(chan struct{})
	s.mu.Unlock()
	s.closeForwards()
}

// CreatePod creates the pod again. Call it only after DeletePod.
func (s *Server) CreatePod() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.created)
}

// Forbid makes the server refuse a verb on a resource, such as create on pods/portforward.
func (s *Server) Forbid(verb, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forbidden[verb+" "+resource] = true
}

// SetCA replaces the CA certificates in the config map.
func (s *Server) SetCA(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ca = text
}

// Silence makes the open port-forwards discard all bytes, as if the pod's node had lost its network.
func (s *Server) Silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.forwards {
		f.silent.Store(true)
	}
}

// Requests returns the number of requests with a verb for a resource.
func (s *Server) Requests(verb, resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[verb+" "+resource]
}
