#!/usr/bin/env bash
# Checks `--via kubectl` against a real Kubernetes API server, see cluster.sh: every command, every
# kubectl that is installed, missing rights, tokens, and faults. Prints a line for each check and
# ends with `N passed, N failed in Ns`. Takes a minute and a half.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ -z "${CLUSTER:-}" ]; then
	exec scripts/cluster.sh bash scripts/cluster-check.sh
fi

work=$CLUSTER/check
mkdir -p "$work"
cd "$work"
passed=0 failed=0
namespace=azure-iot-operations

# good NAME and bad NAME count a check. bad also prints what the last command wrote.
good() {
	echo "ok    $1"
	passed=$((passed + 1))
}

bad() {
	echo "FAIL  $1"
	sed 's/^/      /' "${@:2}"
	failed=$((failed + 1))
}

# ok NAME CMD... demands that CMD succeeds.
ok() {
	local name=$1 code=0
	shift
	"$@" >out 2>err || code=$?
	if [ $code = 0 ]; then
		good "$name"
	else
		bad "$name: exit code $code" out err
	fi
	no_child "$name"
}

# refused NAME CODE TEXT CMD... demands that CMD ends with CODE and says TEXT on standard error.
refused() {
	local name=$1 code=$2 text=$3 got=0
	shift 3
	"$@" >out 2>err || got=$?
	if [ $got = "$code" ] && grep -q -e "$text" err; then
		good "$name: $(head -n 1 err)"
	else
		bad "$name: exit code $got, want $code and: $text" out err
	fi
	no_child "$name"
}

# ended NAME PID CODES FILE demands that a process in the background ends within 60 s, with one of
# the exit codes. FILE has its standard error.
ended() {
	local name=$1 pid=$2 codes=$3 code=0
	( sleep 60 && kill -KILL "$pid" ) 2>/dev/null &
	local limit=$!
	wait "$pid" 2>/dev/null || code=$?
	kill $limit 2>/dev/null || true
	wait $limit 2>/dev/null || true
	case " $codes " in
	*" $code "*) good "$name: exit code $code" ;;
	*) bad "$name: exit code $code, want $codes" "$4" ;;
	esac
	no_child "$name"
}

# no_child demands that no kubectl of this script and no guard is left, unless a command runs in the
# background. They end within 3 s.
no_child() {
	local i
	[ -z "$(jobs -pr)" ] || return 0
	for ((i = 0; i < 30; i++)); do
		[ -z "$(children)" ] && return
		sleep 0.1
	done
	bad "$1: a kubectl is left: $(children)" /dev/null
}

# children prints the port-forwards to this cluster and their guards: process id, command line.
children() {
	local file
	for file in /proc/[0-9]*/environ; do
		if grep -qz "^CLUSTER=$CLUSTER\$" "$file" 2>/dev/null &&
			tr '\0' ' ' <"${file%environ}cmdline" 2>/dev/null | grep "port-forward --address=127.0.0.1" >line; then
			echo "$(basename "${file%/environ}") $(cat line)"
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
	bad "$* does not happen" /dev/null
}

# delete_pods deletes the broker's pods. kwok keeps their connections open, as no kubelet would, so it
# is started again.
delete_pods() {
	kubectl delete pod --all --namespace $namespace --force --grace-period=0 >/dev/null 2>&1
	kill "$(cat "$CLUSTER/kwok.pid")"
	while kill -0 "$(cat "$CLUSTER/kwok.pid")" 2>/dev/null; do sleep 0.01; done
	bash "$CLUSTER/kwok.cmd"
}

# pods makes the broker's two pods, and waits until they are ready.
pods() {
	kubectl apply -f "$CLUSTER/objects.yaml" >/dev/null 2>&1
	kubectl wait --for=condition=Ready pod --all --namespace $namespace --timeout=30s >/dev/null
}

export SSCLI_VIA=kubectl

echo "--- every kubectl"
# Some packages of kubectl have others beside it, named kubectl.1.NN.
for file in $(compgen -G "$(dirname "$(realpath "$(command -v kubectl)")")/kubectl.1.*" | sort -V) "$(command -v kubectl)"; do
	mkdir -p "$work/bin"
	ln -sf "$file" "$work/bin/kubectl"
	ok "$file" env PATH="$work/bin:$PATH" sscli set version "$file"
	rm "$work/bin/kubectl"
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
[ "$(wc -l <exported)" = 10000 ] || bad "export has $(wc -l <exported) lines" /dev/null
ok "watch" sscli watch k --for 500ms
ok "lock run" sscli lock run l -- sh -c 'sscli get k'
ok "ping" sscli ping -n 3 --interval 10ms
ok "doctor" sscli doctor --write
ok "forward" sscli forward -- sh -c 'sscli set f 1 && sscli get f'
ok "shell" sh -c 'printf "set s 1\nget s\n" | sscli -'
refused "attach: the broker has a store" 15 'another state store answers on this broker' sscli serve --attach
ok "attach --standby" sh -c 'timeout -s INT 3 sscli serve --attach --standby || [ $? = 124 ]'

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
	env -u SSCLI_VIA SSCLI_SAT_FILE="$work/token.right" sh -c 'sscli get k' >out 2>err && bad "an expired token is accepted" err
if grep -q 0x87 err; then
	good "expired: $(head -n 1 err)"
else
	bad "expired" err
fi
kubectl create serviceaccount gone --namespace $namespace >/dev/null
kubectl delete serviceaccount gone --namespace $namespace >/dev/null
refused "deleted account" 3 'serviceaccounts "gone" not found' sscli --via-service-account gone get k

echo "--- faults"
# When the pods are deleted, a watch goes on and a lock survives.
sscli watch k -o json >watched 2>watch.err &
watching=$!
await grep -q initial watched
sscli lock run l2 -- sh -c 'while [ ! -e stop ]; do sleep 0.1; done' 2>lock.err &
locking=$!
await sscli lock status l2
delete_pods
pods
ok "set after the pods were deleted" sscli set k again
await grep -q '"value":"again"' watched
touch stop
ended "lock run whose pods were deleted" $locking 0 lock.err
kill -TERM $watching
ended "watch whose pods were deleted" $watching 143 watch.err

# Without pods a lock is given up before its lease expires, and its command is stopped.
sscli lock run --ttl 6s l3 -- sh -c 'while :; do date +%s%N >alive; sleep 0.1; done' 2>lock.err &
locking=$!
await sscli lock status l3
cp alive cut
delete_pods
ended "lock run without pods" $locking 8 lock.err
held=$((($(cat alive) - $(cat cut)) / 1000000))
if [ "$held" -lt 6000 ]; then
	good "the command ran for $held ms after the pods were deleted, the lease is 6 s"
else
	bad "the command ran for $held ms after the pods were deleted" lock.err
fi
refused "get without pods" 3 'pod' sscli -t 5s get k
pods

# A batch that is cut off ends truthfully: what it reports as applied is in the store.
(for ((i = 0; i < 100000; i++)); do echo "set cut$i $i"; done) | sscli batch - >batch.out 2>batch.err &
batching=$!
await test -s batch.out
delete_pods
ended "batch without pods" $batching "3 11 124" batch.err
pods
ok "get after the batch" sscli get cut0

sscli lock run l4 -- sh -c 'echo $$ >pid; exec sleep 1000' 2>lock.err &
locking=$!
await sscli lock status l4
kill -KILL $locking
ended "lock run that was killed" $locking 137 lock.err
command=$(cat pid)
await bash -c "! kill -0 $command"

sscli watch k >watched 2>watch.err &
watching=$!
await test -s watched
for pid in $(children | cut -d ' ' -f 1); do
	[ "$(basename "$(readlink "/proc/$pid/exe")")" = sscli ] || kill -KILL "$pid"
done
ok "set after kubectl was killed" sscli set k third
await grep -q third watched
kill -TERM $watching
ended "watch whose kubectl was killed" $watching 143 watch.err

kill "$(cat "$CLUSTER/api.pid")"
await bash -c "! kubectl get --raw /readyz"
refused "API server gone" 3 'connect' sscli -t 5s get k

printf '%d passed, %d failed in %ds\n' $passed $failed $SECONDS
[ $failed = 0 ]
