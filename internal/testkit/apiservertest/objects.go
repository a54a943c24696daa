package apiservertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

type object map[string]any

// discovery maps paths to the documents from which kubectl learns what the server serves.
var discovery = map[string]object{
	"/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.4"},
	"/api":     {"kind": "APIVersions", "versions": []string{"v1"}},
	"/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []object{
		{"name": "apps", "versions": []object{appsV1}, "preferredVersion": appsV1},
	}},
	"/api/v1":       resources("v1", resource("Service"), resource("Pod"), resource("ConfigMap"), resource("ServiceAccount")),
	"/apis/apps/v1": resources("apps/v1", resource("Deployment", "deploy")),
}

var appsV1 = object{"groupVersion": "apps/v1", "version": "v1"}

// resources returns the document that lists the resources in an API group.
func resources(group string, list ...object) object {
	return object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": list}
}

// resource returns the description of the resource for a kind of object, such as pods for Pod.
func resource(kind string, shortNames ...string) object {
	name := strings.ToLower(kind)
	return object{"name": name + "s", "singularName": name, "shortNames": shortNames, "kind": kind, "namespaced": true, "verbs": []string{"get", "list", "watch"}}
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for path, document := range discovery {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, document) })
	}
	for _, group := range []string{"/api/v1", "/apis/apps/v1"} {
		for _, rest := range []string{"", "/{name}", "/{name}/{subresource}"} {
			mux.HandleFunc(group+"/namespaces/{namespace}/{resource}"+rest, s.serveResource)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.LoggedOut.Load() || r.Header.Get("Authorization") != "Bearer "+userToken {
			fail(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// serveResource answers a request for a resource, such as pods or pods/portforward.
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request) {
	kind, name := r.PathValue("resource"), r.PathValue("name") // name is empty in a request for a list
	resource := strings.TrimSuffix(kind+"/"+r.PathValue("subresource"), "/")
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
	s.requests[verb+" "+resource]++
	forbidden := s.forbidden[verb+" "+resource]
	s.mu.Unlock()
	o, found := s.object(kind, name)
	switch {
	case forbidden:
		group := ""
		if kind == "deployments" {
			group = "apps"
		}
		fail(w, http.StatusForbidden, "Forbidden", fmt.Sprintf("%s %q is forbidden: User %q cannot %s resource %q in API group %q in the namespace %q",
			kind, name, User, verb, resource, group, r.PathValue("namespace")))
	case verb == "list" && resource == "pods":
		items := []object{}
		if pod, ok := s.object("pods", Pod); ok {
			items = append(items, pod)
		}
		answer(w, http.StatusOK, object{"kind": "PodList", "apiVersion": "v1", "metadata": object{"resourceVersion": "1"}, "items": items})
	case verb == "watch" && resource == "pods":
		s.watchPod(w, r)
	case !found || r.PathValue("namespace") != Namespace:
		fail(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s %q not found", kind, name))
	case resource == "pods/portforward":
		s.portForward(w, r)
	case resource == "serviceaccounts/token":
		s.createToken(w, r)
	default:
		answer(w, http.StatusOK, o)
	}
}

// object returns the named object of a resource, and reports whether the object exists.
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

// watchPod answers a watch of the pod. It sends an ADDED event when the pod exists.
func (s *Server) watchPod(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // after an error, writing the event fails too
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
		_ = json.NewEncoder(w).Encode(object{"type": "ADDED", "object": pod}) // fails if the client is gone
	}
	<-r.Context().Done()
}

// createToken answers the request of `kubectl create token`. The request is JSON or, from kubectl
// 1.32 and newer, protobuf. Both contain the audience as plain text.
func (s *Server) createToken(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || !bytes.Contains(body, []byte(Audience)) {
		fail(w, http.StatusBadRequest, "BadRequest", "expected a request with the audience "+Audience)
		return
	}
	token, err := s.o.Token(r.PathValue("name"))
	if err != nil {
		fail(w, http.StatusInternalServerError, "InternalError", err.Error())
		return
	}
	answer(w, http.StatusCreated, object{
		"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
		"status": object{"token": token, "expirationTimestamp": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
	})
}

func answer(w http.ResponseWriter, code int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // fails if the client is gone
}

// fail answers with an error status, as an API server does.
func fail(w http.ResponseWriter, code int, reason, message string) {
	answer(w, code, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": message, "code": code})
}
