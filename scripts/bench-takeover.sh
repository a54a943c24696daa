#!/usr/bin/env bash
# Measures how long the next holder of a lock waits, for `sscli lock run` on `sscli serve`
# and for `etcdctl lock` on an etcd:
#
#	release: from the end of the holder's command to the start of the next one's
#	SIGKILL: from the death of the holder's process to the start of the next command;
#	         mostly the wait for the lease to expire; both programs renew it about three
#	         times per TTL
#
#	scripts/bench-takeover.sh            10 releases and 5 deaths each, about two minutes
#	scripts/bench-takeover.sh 20 10
#
# Requires Go, etcd and etcdctl.
exec "$(dirname "${BASH_SOURCE[0]}")/bench/run.sh" takeover "$@"
