#!/usr/bin/env bash
# Runs a command in a Kubernetes cluster without containers: a real API server with its RBAC and
# service-account tokens, real kubectl, pods that kwok pretends to run, and `sscli serve` behind the
# service aio-broker.
#
#   scripts/cluster.sh [CMD...]     runs CMD (default: bash) with KUBECONFIG and CLUSTER set
#   scripts/cluster.sh --build      only builds what is missing; names what must be installed
#   scripts/cluster.sh --built      only says, with its exit code, whether all that it requires is there
#
# The servers end with CMD. $CLUSTER is their directory: admin.kubeconfig, the kubeconfigs of users
# with fewer rights (NAME.kubeconfig), ca.crt of the broker, the process ids (NAME.pid), the command
# lines that start them again (NAME.cmd) and logs.
#
# The first run builds kube-apiserver and kwok from the Go module proxy, into
# ${XDG_CACHE_HOME:-~/.cache}/sscli-cluster: 4 minutes on two quiet cores, 170 MB. A start takes
# about 10 s. Requires etcd (Debian: etcd-server), kubectl 1.24 or newer, openssl.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

kubernetes=1.31.4
kwok=0.6.1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sscli-cluster

build() {
	if [ ! -x "$cache/kube-apiserver" ]; then
		mkdir -p "$cache/src"
		sed "s/VERSION/${kubernetes#1.}/" scripts/cluster/kube-apiserver.mod >"$cache/src/go.mod"
		cp scripts/cluster/kube-apiserver.go.txt "$cache/src/main.go"
		(cd "$cache/src" && go mod tidy -e && go build -p "${CLUSTER_BUILD_PROCS:-1}" -trimpath -ldflags='-s -w' -o "$cache/kube-apiserver.new" .)
		mv "$cache/kube-apiserver.new" "$cache/kube-apiserver"
	fi
	if [ ! -x "$cache/kwok" ]; then
		GOBIN=$cache go install -p "${CLUSTER_BUILD_PROCS:-1}" "sigs.k8s.io/kwok/cmd/kwok@v$kwok"
	fi
}

# installed names a program that is missing, on standard error.
installed() {
	local program
	for program in go etcd kubectl openssl; do
		command -v $program >/dev/null || { echo "cluster.sh: $program is not installed" >&2; return 1; }
	done
	kubectl create token --help 2>/dev/null | grep -q -e --audience || { echo "cluster.sh: kubectl is older than 1.24" >&2; return 1; }
}

case ${1:-} in
--built)
	[ -x "$cache/kube-apiserver" ] && [ -x "$cache/kwok" ] && installed
	exit
	;;
--build)
	installed
	build
	exit
	;;
esac
installed # first, because build takes minutes
build

CLUSTER=$(mktemp -d)
export CLUSTER
cleanup() {
	local file
	for file in "$CLUSTER"/*.pid; do
		if [ -e "$file" ]; then
			kill "$(cat "$file")" 2>/dev/null || true
		fi
	done
	wait 2>/dev/null || true
	rm -rf "$CLUSTER"
}
trap cleanup EXIT

# run NAME CMD... starts a server.
run() {
	local name=$1
	shift
	"$@" >>"$CLUSTER/$name.log" 2>&1 &
	echo $! >"$CLUSTER/$name.pid"
	printf '%q ' "$@" >"$CLUSTER/$name.cmd"
	echo ">>$CLUSTER/$name.log 2>&1 & echo \$! >$CLUSTER/$name.pid" >>"$CLUSTER/$name.cmd"
}

# await WHAT CMD... waits until CMD succeeds, 60 s at most.
await() {
	local what=$1 i
	shift
	for ((i = 0; i < 600; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "cluster.sh: $what is not ready" >&2
	tail -n 20 "$CLUSTER"/*.log >&2
	exit 1
}

# free_ports N prints N ports that nobody listens on.
free_ports() {
	local i port found=""
	for ((i = 0; i < $1; i++)); do
		while port=$((20000 + RANDOM % 12000)); (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || [[ " $found " == *" $port "* ]]; do :; done
		found+=" $port"
	done
	echo "$found"
}
read -r etcd_port peer_port api_port kubelet_port broker_port <<<"$(free_ports 5)"
echo "$api_port" >"$CLUSTER/api-port"
echo "$broker_port" >"$CLUSTER/broker-port"

# The broker's certificates, as cert-manager makes them for the service, and the cluster's key.
(
	cd "$CLUSTER"
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.crt -days 2 -subj "/CN=Azure IoT Operations Quickstart Root CA" 2>/dev/null
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout broker.key -out broker.csr -subj /CN=aio-broker 2>/dev/null
	openssl x509 -req -in broker.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out broker.crt \
		-extfile <(echo "subjectAltName=DNS:aio-broker,DNS:aio-broker.azure-iot-operations.svc.cluster.local") 2>/dev/null
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout kubelet.key -out kubelet.crt -days 2 -subj /CN=kubelet \
		-addext subjectAltName=IP:127.0.0.1 2>/dev/null
	openssl genrsa -out accounts.key 2048 2>/dev/null
	openssl rsa -in accounts.key -pubout -out accounts.pub 2>/dev/null
)
printf 'admin-token,admin,1,"system:masters"\nviewer-token,viewer,2\noperator-token,operator,3\nforwarder-token,forwarder,4\n' >"$CLUSTER/tokens.csv"

for user in admin viewer operator forwarder nobody; do
	cat >"$CLUSTER/$user.kubeconfig" <<-EOF
		{"apiVersion": "v1", "kind": "Config", "current-context": "lab",
		 "clusters": [{"name": "lab", "cluster": {"server": "https://127.0.0.1:$api_port", "certificate-authority": "$CLUSTER/certs/apiserver.crt"}}],
		 "users": [{"name": "$user", "user": {"token": "$user-token"}}],
		 "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "$user"}}]}
	EOF
done
export KUBECONFIG=$CLUSTER/admin.kubeconfig

run etcd etcd --data-dir "$CLUSTER/etcd" --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
	--listen-peer-urls "http://127.0.0.1:$peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" --initial-cluster "default=http://127.0.0.1:$peer_port"
start_api() {
	run api "$cache/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd_port" --secure-port="$api_port" --bind-address=127.0.0.1 \
		--cert-dir="$CLUSTER/certs" --token-auth-file="$CLUSTER/tokens.csv" --authorization-mode=RBAC \
		--service-account-issuer=https://kubernetes.default.svc --service-account-signing-key-file="$CLUSTER/accounts.key" \
		--service-account-key-file="$CLUSTER/accounts.pub" --api-audiences=https://kubernetes.default.svc,aio-internal \
		--service-cluster-ip-range=10.96.0.0/16 --disable-admission-plugins=ServiceAccount --kubelet-certificate-authority="$CLUSTER/kubelet.crt"
}
start_api
go build -o "$CLUSTER/sscli" ./cmd/sscli
await "the API server" kubectl get --raw /readyz

cat >"$CLUSTER/kwok.yaml" <<EOF
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata: {name: broker}
spec:
  forwards:
  - ports: [18883]
    target: {port: $broker_port, address: 127.0.0.1}
EOF
sed "s/KUBELET_PORT/$kubelet_port/" scripts/cluster/objects.yaml >"$CLUSTER/objects.yaml"
kubectl apply -f "$CLUSTER/objects.yaml" >"$CLUSTER/apply.log" 2>&1 || { cat "$CLUSTER/apply.log" >&2; exit 1; }
kubectl create configmap azure-iot-operations-aio-ca-trust-bundle --namespace azure-iot-operations --from-file=ca.crt="$CLUSTER/ca.crt" >>"$CLUSTER/apply.log"
kubectl get --raw /openid/v1/jwks >"$CLUSTER/jwks.json"

run kwok "$cache/kwok" --kubeconfig "$KUBECONFIG" --manage-all-nodes=true --node-ip=127.0.0.1 --node-port="$kubelet_port" \
	--server-address="127.0.0.1:$kubelet_port" --tls-cert-file="$CLUSTER/kubelet.crt" --tls-private-key-file="$CLUSTER/kubelet.key" \
	--config="$CLUSTER/kwok.yaml"
run broker "$CLUSTER/sscli" serve --listen "127.0.0.1:$broker_port" --listen-cert "$CLUSTER/broker.crt" --listen-key "$CLUSTER/broker.key" \
	--sat-jwks "$CLUSTER/jwks.json" --sat-issuer https://kubernetes.default.svc --sat-audience aio-internal
await "the broker" grep -q . "$CLUSTER/broker.log"
await "the broker's pod" kubectl wait --for=condition=Ready pod/aio-broker-frontend-0 --namespace azure-iot-operations --timeout=1s

PATH=$CLUSTER:$PATH
if [ $# -eq 0 ]; then
	set -- bash
fi
"$@"
