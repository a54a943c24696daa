package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sscli/sscli/cmd/sscli/internal/app"
	"github.com/sscli/sscli/cmd/sscli/internal/config"
	"github.com/sscli/sscli/cmd/sscli/internal/fault"
	"github.com/sscli/sscli/cmd/sscli/internal/suggest"
	"github.com/sscli/sscli/cmd/sscli/internal/usage"
)

// manifest is a pod that runs until it is deleted, so that kubectl exec works at any time. Words that
// begin with $ are placeholders.
const manifest = `apiVersion: v1
kind: Pod
metadata:
  name: $NAME
  namespace: $NAMESPACE
spec:
  serviceAccountName: $ACCOUNT
  automountServiceAccountToken: false
  containers:
    - name: sscli
      image: $IMAGE
      args: [serve, --listen, "127.0.0.1:0"] # keeps the pod running; nothing uses this emulator
      securityContext:
        runAsNonRoot: true
        readOnlyRootFilesystem: true
        allowPrivilegeEscalation: false
        capabilities: { drop: [ALL] }
        seccompProfile: { type: RuntimeDefault }
      env:
        - { name: AIO_BROKER_HOSTNAME, value: $HOST }
        - { name: AIO_BROKER_TCP_PORT, value: "18883" }
        - { name: AIO_MQTT_USE_TLS, value: "true" }
        - { name: AIO_TLS_CA_FILE, value: /var/run/certs/ca.crt }
        - { name: AIO_SAT_FILE, value: /var/run/secrets/tokens/broker-sat }
      volumeMounts:
        - { name: ca, mountPath: /var/run/certs, readOnly: true }
        - { name: token, mountPath: /var/run/secrets/tokens, readOnly: true }
        - { name: tmp, mountPath: /tmp } # for lock run and edit
  volumes:
    - name: tmp
      emptyDir: { medium: Memory }
    - name: ca
      configMap: { name: $CA }
    - name: token
      projected:
        sources:
          - serviceAccountToken:
              path: broker-sat
              audience: aio-internal
              expirationSeconds: 86400
`

// NewPod returns the command `sscli pod`.
func NewPod(a *app.App) *cobra.Command {
	name, namespace, account := config.Text("sscli"), config.Text("azure-iot-operations"), config.Text("default")
	host, ca, image := config.Text("aio-broker"), config.Text("azure-iot-operations-aio-ca-trust-bundle"), config.Text("")
	cmd := &cobra.Command{
		Use:     "pod",
		Short:   "Print the manifest of a pod that has sscli",
		GroupID: app.GroupServe,
		Long: `Print a manifest of a pod that has sscli, the broker's CA, a service-account token for
the broker, and the AIO_ variables. Nothing is applied.

Use the pod in a cluster that does not allow port forwarding. Elsewhere, --via kubectl
works without a pod.`,
		Example: `  sscli pod | kubectl apply -f -
  kubectl exec -it -n azure-iot-operations sscli -- sscli
  kubectl delete -n azure-iot-operations pod sscli`,
		Args:        usage.NoArgs,
		Annotations: map[string]string{app.Offline: ""},
		RunE: func(*cobra.Command, []string) error {
			return printPod(a, map[string]config.Text{"name": name, "namespace": namespace, "service-account": account, "ca": ca}, string(host), string(image))
		},
	}
	fs := cmd.Flags()
	fs.Var(&name, "name", "`NAME` of the pod")
	fs.Var(&namespace, "namespace", "`NAMESPACE` of the pod and the broker")
	fs.Var(&account, "service-account", "`NAME` of the service account that the pod logs in as")
	fs.Var(&host, "broker", "`HOST` name of the broker's service")
	fs.Var(&ca, "ca", "`NAME` of the config map with the broker's CA")
	fs.Var(&image, "image", "`IMAGE` with sscli (default: the image of this version)")
	return cmd
}

// printPod prints the manifest. names holds the value of each flag that names a resource of the
// cluster, by the name of the flag.
func printPod(a *app.App, names map[string]config.Text, host, image string) error {
	for flag, name := range names {
		if !config.IsResourceName(string(name)) {
			return fault.Usagef("--%s %.80q: expected the name of a resource in the cluster", flag, string(name))
		}
	}
	if !config.IsResourceName(host) {
		return fault.Usagef("--broker %.80q: expected a host name", host)
	}
	if image == "" {
		image = "ghcr.io/sscli/sscli:" + strings.TrimPrefix(a.Build.Version, "v")
		if a.Build.Version == "" {
			image += "latest"
			a.Advise("this sscli is no release, so the image "+image+" may not exist", suggest.Try("`--image IMAGE`, with one that has sscli"))
		}
	}
	text := strings.NewReplacer("$NAMESPACE", scalar(names["namespace"]), "$NAME", scalar(names["name"]), "$ACCOUNT", scalar(names["service-account"]),
		"$IMAGE", strconv.Quote(image), "$HOST", scalar(config.Text(host)), "$CA", scalar(names["ca"])).Replace(manifest)
	if _, err := fmt.Fprint(a.Stdout, text); err != nil {
		return &fault.OutputError{Err: err}
	}
	return nil
}

// scalar returns the name of a resource as a YAML string. It quotes names that YAML could read as a number, a
// boolean or null.
func scalar(name config.Text) string {
	switch text := string(name); {
	case text[0] <= '9', slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, text):
		return strconv.Quote(text)
	default:
		return text
	}
}
