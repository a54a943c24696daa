package apiservertest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// An object is a JSON object.
type object map[string]any

// kinds are the resources of the server, by API group and version.
var kinds = map[string][]object{
	"v1": {
		{"name": "services", "singularName": "service", "kind": "Service", "shortNames": []string{"svc"}},
		{"name": "pods", "singularName": "pod", "kind": "Pod", "shortNames": []string{"po"}},
		{"name": "configmaps", "singularName": "configmap", "kind": "ConfigMap"},
		{"name": "serviceaccounts", "singularName": "serviceaccount", "kind": "ServiceAccount"},
	},
	"apps/v1": {{"name": "deployments", "singularName": "deployment", "kind": "Deployment", "shortNames": []string{"deploy"}}},
}

// serve answers a request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	loggedOut := s.loggedOut || r.Header.Get("Authorization") != "Bearer "+userToken
	s.mu.Unlock()
	if loggedOut {
		fail(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
		return
	}
	path := strings.Trim(r.URL.Path, "/")
	switch path {
	case "version":
		answer(w, http.StatusOK, object{"major": "1", "minor": "32", "gitVersion": "v1.32.4"})
		return
	case "api":
		answer(w, http.StatusOK, object{"kind": "APIVersions", "versions": []string{"v1"}})
		return
	case "apis":
		version := object{"groupVersion": "apps/v1", "version": "v1"}
		answer(w, http.StatusOK, object{"kind": "APIGroupList", "apiVersion": "v1", "groups": []object{
			{"name": "apps", "versions": []object{version}, "preferredVersion": version},
		}})
		return
	}
	group, path := "v1", strings.TrimPrefix(path, "api/v1")
	if rest, ok := strings.CutPrefix(path, "apis/apps/v1"); ok {
		group, path = "apps/v1", rest
	}
	if path == "" {
		answer(w, http.StatusOK, object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": resources(group)})
		return
	}
	words := strings.Split(strings.Trim(path, "/"), "/") // namespaces NAMESPACE RESOURCE [NAME [SUBRESOURCE]]
	if len(words) < 3 || len(words) > 5 || words[0] != "namespaces" {
		fail(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return
	}
	resource, name := words[2], strings.Join(words[3:min(len(words), 4)], "")
	s.serveResource(w, r, words[1], strings.Join(append([]string{resource}, words[min(len(words), 4):]...), "/"), name)
}

// resources returns the resources of an API group for discovery.
func resources(group string) []object {
	var list []object
	for _, kind := range kinds[group] {
		r := object{"namespaced": true, "verbs": []string{"get", "list", "watch"}}
		for k, v := range kind {
			r[k] = v
		}
		list = append(list, r)
	}
	return list
}

// serveResource answers a request for a resource, such as pods or pods/portforward. name is empty in
// a request for a list.
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, namespace, resource, name string) {
	verb := "get"
	switch {
	case r.Method == http.MethodPost:
		verb = "create"
	case name == "" && r.URL.Query().Get("watch") != "":
		verb = "watch"
	case name == "":
		verb = "list"
	}
	s.mu.Lock()
	s.requests = append(s.requests, verb+" "+resource)
	forbidden := slices.Contains(s.forbidden, verb+" "+resource)
	s.mu.Unlock()
	kind, _, _ := strings.Cut(resource, "/")
	o, found := s.object(kind, name)
	switch {
	case forbidden:
		group := ""
		if kind == "deployments" {
			group = "apps"
		}
		fail(w, http.StatusForbidden, "Forbidden", fmt.Sprintf("%s %q is forbidden: User %q cannot %s resource %q in API group %q in the namespace %q",
			kind, name, User, verb, resource, group, namespace))
	case verb == "list" && resource == "pods":
		items := []object{}
		if pod, ok := s.object("pods", Pod); ok {
			items = append(items, pod)
		}
		answer(w, http.StatusOK, object{"kind": "PodList", "apiVersion": "v1", "metadata": object{"resourceVersion": "1"}, "items": items})
	case verb == "watch" && resource == "pods":
		s.watchPod(w, r)
	case !found || namespace != Namespace:
		fail(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", kind, name))
	case resource == "pods/portforward":
		s.portForward(w, r)
	case resource == "serviceaccounts/token":
		s.createToken(w, r, name)
	default:
		answer(w, http.StatusOK, o)
	}
}

// object returns an object, if it exists.
func (s *Server) object(resource, name string) (object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := object{"apiVersion": "v1"}
	labels := object{"app": "broker"}
	switch resource + "/" + name {
	case "services/" + Service:
		o["kind"] = "Service"
		o["spec"] = object{"selector": labels, "clusterIP": "10.0.0.1", "ports": []object{{"name": "mqtt", "port": 18883, "targetPort": 18883, "protocol": "TCP"}}}
	case "deployments/" + Service:
		o["kind"], o["apiVersion"] = "Deployment", "apps/v1"
		o["spec"] = object{"selector": object{"matchLabels": labels}}
	case "pods/" + Pod:
		if !isClosed(s.created) {
			return nil, false
		}
		o["kind"] = "Pod"
		o["spec"] = object{"containers": []object{{"name": "broker", "ports": []object{{"containerPort": 18883}}}}}
		o["status"] = object{"phase": "Running", "conditions": []object{{"type": "Ready", "status": "True"}}}
	case "configmaps/" + ConfigMap:
		o["kind"] = "ConfigMap"
		o["data"] = object{"ca-bundle.crt": s.ca}
	case "serviceaccounts/" + Account:
		o["kind"] = "ServiceAccount"
	default:
		return nil, false
	}
	o["metadata"] = object{"name": name, "namespace": Namespace, "uid": name, "resourceVersion": "1", "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z"}
	return o, true
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// watchPod waits until the pod is there, and tells the client.
func (s *Server) watchPod(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // an error shows when the event is written
	s.mu.Lock()
	created := s.created
	s.mu.Unlock()
	select {
	case <-created:
	case <-s.closed:
		return
	case <-r.Context().Done():
		return
	}
	if pod, ok := s.object("pods", Pod); ok {
		_ = json.NewEncoder(w).Encode(object{"type": "ADDED", "object": pod}) // the client is gone
	}
	<-r.Context().Done()
}

// createToken answers the request of `kubectl create token`.
func (s *Server) createToken(w http.ResponseWriter, r *http.Request, account string) {
	body, err := io.ReadAll(r.Body)
	audience := requestedAudience(body)
	if err != nil || audience == "" {
		fail(w, http.StatusBadRequest, "BadRequest", "expected a request with an audience")
		return
	}
	token, err := s.o.Token(account, audience)
	if err != nil {
		fail(w, http.StatusInternalServerError, "InternalError", err.Error())
		return
	}
	answer(w, http.StatusCreated, object{
		"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": object{"audiences": []string{audience}},
		"status": object{"token": token, "expirationTimestamp": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
	})
}

// requestedAudience returns the first audience in a request for a token, or "". kubectl 1.32 and newer
// send the request in protobuf, older ones in JSON.
func requestedAudience(body []byte) string {
	if message, ok := bytes.CutPrefix(body, []byte("k8s\x00")); ok {
		request := field(message, 2)  // runtime.Unknown.raw
		spec := field(request, 2)     // TokenRequest.spec
		return string(field(spec, 1)) // the first of TokenRequestSpec.audiences
	}
	var request struct {
		Spec struct{ Audiences []string }
	}
	if err := json.Unmarshal(body, &request); err != nil || len(request.Spec.Audiences) == 0 {
		return ""
	}
	return request.Spec.Audiences[0]
}

// field returns the first field with a number in a protobuf message, if the field is a string or a
// message; nil if there is none.
func field(message []byte, number uint64) []byte {
	for len(message) > 0 {
		key, n := binary.Uvarint(message)
		if n <= 0 {
			return nil
		}
		length, m := binary.Uvarint(message[n:])
		if m <= 0 {
			return nil
		}
		message = message[n+m:]
		if key&7 != 2 { // a number
			continue
		}
		if length > uint64(len(message)) {
			return nil
		}
		if key>>3 == number {
			return message[:length]
		}
		message = message[length:]
	}
	return nil
}

func answer(w http.ResponseWriter, code int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}

// fail answers with an error of the API server.
func fail(w http.ResponseWriter, code int, reason, message string) {
	answer(w, code, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})
}
