#!/usr/bin/env bash
# Measures how long `sscli --via kubectl get` takes until its answer, beside the time in which
# `kubectl port-forward` alone is ready, on a real API server: see cluster.sh, which says what this
# requires. Exits with 1 if the goal is missed.
#
#	scripts/bench-via.sh                20 runs each, about half a minute
#	scripts/bench-via.sh -rounds 50     -help lists the flags
exec "$(dirname "${BASH_SOURCE[0]}")/cluster.sh" scripts/bench/run.sh via "$@"
