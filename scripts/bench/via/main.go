//go:build linux

// Command via measures how long `sscli --via kubectl get` takes from its start to its answer. For
// comparison, it measures how long a `kubectl port-forward` alone takes until it is ready, and how
// long the three kubectl processes that sscli starts take without sscli, when they compete for the
// same cores. scripts/bench-via.sh runs it in a cluster that scripts/cluster.sh starts.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sscli/sscli/scripts/harness"
)

func main() {
	rounds := flag.Int("rounds", 20, "runs of each command")
	harness.Main(10*time.Minute, []string{"kubectl"}, func(ctx context.Context, b *harness.Bench) error {
		return run(ctx, b, *rounds)
	})
}

func run(ctx context.Context, b *harness.Bench, rounds int) error {
	if os.Getenv("CLUSTER") == "" {
		return errors.New("no cluster: use scripts/bench-via.sh")
	}
	via := []string{b.SSCLI, "--via", "kubectl"}
	if _, err := harness.Run(exec.CommandContext(ctx, b.SSCLI, append(via[1:], "set", "k", "v")...)); err != nil {
		return err
	}
	forward := []string{"kubectl", "port-forward", "--namespace=" + namespace, "--address=127.0.0.1", "service/aio-broker", ":18883"}
	// sscli starts kubectl with the same environment and flag.
	kubectl := []string{"env", "GOGC=400", "kubectl", "--namespace=" + namespace}
	f, err := harness.Rounds(max(rounds, 5),
		harness.Contender{Name: "sscli get", Measure: until(ctx, "v", append(via, "get", "k")...)},
		harness.Contender{Name: "kubectl port-forward", Measure: until(ctx, "Forwarding from", forward...)},
		harness.Contender{Name: "three kubectls", Measure: slowest(
			until(ctx, "Forwarding from", append(kubectl[:2:2], forward...)...),
			until(ctx, "{", append(kubectl[:4:4], "get", "--raw", "/api/v1/namespaces/"+namespace+"/configmaps/azure-iot-operations-aio-ca-trust-bundle")...),
			until(ctx, "ey", append(kubectl[:4:4], "create", "token", "default", "--audience=aio-internal")...))},
	)
	if err != nil {
		return err
	}
	b.AtMost("P17", "ms, `--via kubectl get` until its answer / `kubectl port-forward` until it is ready", f[0], f[1], 1.2)
	fmt.Printf("for comparison: the three kubectl processes that sscli starts take %.2f times as long without sscli\n", f[2].Over(f[1]))
	return nil
}

const namespace = "azure-iot-operations"

// slowest returns a function that takes measurements in parallel and returns the largest figure.
func slowest(measures ...func() (float64, error)) func() (float64, error) {
	return func() (float64, error) {
		figures, errs := make([]float64, len(measures)), make([]error, len(measures))
		var all sync.WaitGroup
		for i, measure := range measures {
			all.Go(func() { figures[i], errs[i] = measure() })
		}
		all.Wait()
		return slices.Max(figures), errors.Join(errs...)
	}
}

// until returns a function that runs a command and measures the milliseconds until its standard
// output begins with text. It then interrupts the command and waits for its end.
func until(ctx context.Context, text string, args ...string) func() (float64, error) {
	return func() (float64, error) {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return 0, err
		}
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		got, _ := bufio.NewReaderSize(out, 64).Peek(len(text)) // after an error, got holds the bytes read before the error
		took := time.Since(begin)
		_ = cmd.Process.Signal(os.Interrupt) // fails if the command has ended
		_ = cmd.Wait()                       // its error is expected after the interrupt
		if string(got) != text {
			return 0, fmt.Errorf("%s: printed %q, want %q: %s", strings.Join(args, " "), got, text, &stderr)
		}
		return took.Seconds() * 1000, nil
	}
}
