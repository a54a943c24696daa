#!/usr/bin/env bash
# Checks `--via kubectl` against a real Kubernetes API server, see cluster.sh: every command, every
# kubectl that is installed, missing rights, tokens, and faults. Takes a minute.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ -z "${CLUSTER:-}" ]; then
	exec scripts/cluster.sh bash scripts/cluster-check.sh
fi

work=$CLUSTER/check
mkdir -p "$work"
cd "$work"
failed=0
namespace=azure-iot-operations

# ok NAME CMD... demands that CMD succeeds.
ok() {
	local name=$1
	shift
	if "$@" >out 2>err; then
		echo "ok    $name"
	else
		echo "FAIL  $name: exit code $?"
		cat out err
		failed=1
	fi
	no_child "$name"
}

# refused NAME CODE TEXT CMD... demands that CMD ends with CODE and says TEXT on standard error.
refused() {
	local name=$1 code=$2 text=$3 got=0
	shift 3
	"$@" >out 2>err || got=$?
	if [ $got = "$code" ] && grep -q -e "$text" err; then
		echo "ok    $name: $(head -n 1 err)"
	else
		echo "FAIL  $name: exit code $got, want $code and: $text"
		cat out err
		failed=1
	fi
	no_child "$name"
}

# no_child demands that no kubectl of this script is left.
no_child() {
	local left
	for i in 1 2 3 4 5 6 7 8 9 10; do
		left=$(children)
		[ -z "$left" ] && return
		sleep 0.3
	done
	echo "FAIL  $1: a kubectl is left: $left"
	failed=1
}

# children lists the port-forwards to this cluster.
children() {
	local file
	for file in /proc/[0-9]*/environ; do
		if grep -qz "^CLUSTER=$CLUSTER\$" "$file" 2>/dev/null && tr '\0' ' ' <"${file%environ}cmdline" 2>/dev/null | grep -q "port-forward --address=127.0.0.1"; then
			tr '\0' ' ' <"${file%environ}cmdline" || true
		fi
	done
}

# await CMD... waits until CMD succeeds, 30 s at most.
await() {
	local i
	for ((i = 0; i < 300; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "FAIL  $* does not happen"
	failed=1
}

# pods makes the broker's two pods, and waits until they are ready.
pods() {
	kubectl apply -f "$CLUSTER/objects.yaml" >/dev/null 2>&1
	kubectl wait --for=condition=Ready pod --all --namespace $namespace --timeout=30s >/dev/null
}

delete_pods() { kubectl delete pod --all --namespace $namespace --force --grace-period=0 >/dev/null 2>&1; }

export SSCLI_VIA=kubectl

echo "--- every kubectl"
for program in $(compgen -c kubectl. | grep -E '^kubectl\.[0-9.]+$' | sort -u -V) kubectl; do
	mkdir -p "bin-$program"
	ln -sf "$(command -v "$program")" "bin-$program/kubectl"
	ok "$program $("$program" version --client 2>/dev/null | head -n 1)" env PATH="$work/bin-$program:$PATH" sscli set version "$program"
done

echo "--- every command"
ok "set" sscli set k v
ok "get" sscli get k
ok "pod/" sscli --via kubectl:pod/aio-broker-frontend-0 get k
ok "deploy/" sscli --via kubectl:deploy/aio-broker get k
ok "context" sscli --via kubectl:lab/$namespace/aio-broker get k
for ((i = 0; i < 10000; i++)); do echo "set batch$i $i"; done >lines
ok "batch of 10000" sscli batch --inflight 64 lines
ok "export" sscli export 'batch*' -f exported
[ "$(wc -l <exported)" = 10000 ] || { echo "FAIL  export has $(wc -l <exported) lines"; failed=1; }
ok "watch" sscli watch k --for 500ms
ok "lock run" sscli lock run l -- sh -c 'sscli get k'
ok "ping" sscli ping -n 3 --interval 10ms
ok "doctor" sscli doctor --write
ok "forward" sscli forward -- sh -c 'sscli set f 1 && sscli get f'
ok "shell" sh -c 'printf "set s 1\nget s\n" | sscli -'
ok "attach" sh -c 'timeout -s INT 3 sscli serve --attach || [ $? = 124 ]'

echo "--- missing rights"
for user in viewer forwarder; do
	refused "$user: token" 4 'may not create serviceaccounts/token' env KUBECONFIG="$CLUSTER/$user.kubeconfig" sscli get k
done
ok "operator" env KUBECONFIG="$CLUSTER/operator.kubeconfig" sscli get k
kubectl create token default --namespace $namespace --audience aio-internal >token.right
refused "viewer: forward" 4 'may not create pods/portforward' env KUBECONFIG="$CLUSTER/viewer.kubeconfig" sscli --sat-file token.right --ca-file "$CLUSTER/ca.crt" get k
refused "forwarder: CA" 4 'may not get configmaps' env KUBECONFIG="$CLUSTER/forwarder.kubeconfig" sscli --sat-file token.right get k
refused "no login" 4 'kubectl' env KUBECONFIG="$CLUSTER/nobody.kubeconfig" sscli get k

echo "--- what there is not"
refused "service" 3 'services "none" not found' sscli --via kubectl:none get k
refused "pod" 3 'pods "none" not found' sscli --via kubectl:pod/none get k
refused "namespace" 3 'not found' sscli --via kubectl:none/aio-broker get k
refused "config map" 3 'configmaps "none" not found' sscli --via-ca none get k
refused "account" 3 'serviceaccounts "none" not found' sscli --via-service-account none get k
refused "kube context" 3 'none' sscli --via kubectl:none/$namespace/aio-broker get k
refused "kubectl" 2 'kubectl is not in the PATH' env PATH="$CLUSTER" sscli get k

echo "--- tokens"
ok "right" sscli --sat-file token.right get k
kubectl create token default --namespace $namespace --audience other >token.other
refused "another audience" 4 '0x87' sscli --sat-file token.other get k
sscli serve --listen 127.0.0.1:0 --sat-audience aio-internal --sat-out foreign -- true
refused "another cluster" 4 '0x87' sscli --sat-file foreign get k
# The API server issues tokens for 10 minutes at least, so the broker's clock runs ahead.
sscli serve --listen 127.0.0.1:0 --sat-audience aio-internal --sat-jwks "$CLUSTER/jwks.json" --skew 2h -- \
	env -u SSCLI_VIA SSCLI_SAT_FILE="$work/token.right" sh -c 'sscli get k' >out 2>err && { echo "FAIL  expired token"; failed=1; }
if grep -q 0x87 err; then
	echo "ok    expired: $(head -n 1 err)"
else
	cat err
	failed=1
fi
kubectl create serviceaccount gone --namespace $namespace >/dev/null
kubectl delete serviceaccount gone --namespace $namespace >/dev/null
refused "deleted account" 3 'serviceaccounts "gone" not found' sscli --via-service-account gone get k

echo "--- faults"
# A batch ends truthfully, a watch goes on, a lock survives.
sscli watch k -o json >watched 2>watch.err &
watching=$!
await grep -q initial watched
sscli lock run --ttl 20s l2 -- sh -c 'while [ ! -e stop ]; do sleep 0.1; done' >lock.out 2>lock.err &
locking=$!
await sscli forward -- sh -c 'sscli lock status l2'
kubectl delete pod aio-broker-frontend-0 aio-broker-frontend-1 --namespace $namespace --force --grace-period=0 >/dev/null 2>&1
pods
ok "set after the pods were deleted" sscli set k again
await grep -q '"value":"again"' watched
grep -q '"value":"again"' watched && echo "ok    the watch saw the change"
touch stop
if wait $locking; then echo "ok    the lock survived"; else echo "FAIL  lock run: exit code $?"; cat lock.err; failed=1; fi
kill -INT $watching
wait $watching || true
no_child watch

(for ((i = 0; i < 100000; i++)); do echo "set cut$i $i"; done) | sscli batch - >batch.out 2>batch.err &
batching=$!
await test -s batch.out
delete_pods
code=0
wait $batching || code=$?
case $code in 3 | 11 | 124) echo "ok    batch without pods: $(head -n 1 batch.err)" ;; *) echo "FAIL  batch: exit code $code"; cat batch.err; failed=1 ;; esac
no_child batch
refused "no pod" 3 'pod' sscli -t 5s get k
pods

sscli lock run --ttl 20s l3 -- sh -c 'sleep 1000' >lock.out 2>lock.err &
locking=$!
await sscli forward -- sh -c 'sscli lock status l3'
kill -KILL $locking
wait $locking 2>/dev/null || true
no_child "lock run killed"
echo "ok    lock run killed"

sscli watch k >watched 2>watch.err &
watching=$!
await test -s watched
kill -KILL "$(pgrep -f "port-forward --address=127.0.0.1" -n)" 2>/dev/null || true
ok "set after kubectl was killed" sscli set k third
await grep -q third watched
kill -TERM $watching
wait $watching || true
no_child "watch ended"

kill "$(cat "$CLUSTER/api.pid")"
await bash -c "! kubectl get --raw /readyz"
refused "API server gone" 3 'connect' sscli -t 5s get k

exit $failed
