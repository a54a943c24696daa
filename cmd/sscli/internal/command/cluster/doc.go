// Package cluster has the commands for a broker in a Kubernetes cluster: forward, which keeps a
// connection into the cluster open for other commands, and pod, which prints the manifest of a pod that
// has sscli and its connection settings.
//
// forward listens on the loopback interface and forwards each connection through the way of --via
// (forwarder.go). The listening address stays the same even if the broker's pod ends, which also ends
// kubectl's port-forward. The CA and the token are in files that only the user can read (files.go).
// forward removes the directory of these files at the end. If sscli is killed, its guard process or the
// next forward removes the directory (directory.go).
package cluster
