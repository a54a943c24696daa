package sscli_test

import (
	"context"
	"fmt"
	"log"
	"os/exec"

	"github.com/testcontainers/testcontainers-go"

	sscli "github.com/sscli/sscli/testcontainers"
)

// An application that is a program of its own finds the store by the variables of Env.
func ExampleRun() {
	ctx := context.Background()
	store, err := sscli.Run(ctx, "ghcr.io/sscli/sscli:latest",
		sscli.WithLoad("testdata/keys"),
		sscli.WithRedis(),
		testcontainers.WithCmdArgs("--max-keys", "100"),
	)
	defer func() {
		if err := testcontainers.TerminateContainer(store); err != nil {
			log.Print(err)
		}
	}()
	if err != nil {
		log.Print(err)
		return
	}
	env, err := store.Env(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	app := exec.Command("./app")
	app.Env = app.Environ()
	for name, value := range env {
		app.Env = append(app.Env, name+"="+value)
	}
	out, err := app.CombinedOutput()
	fmt.Printf("%s%v\n", out, err)
}
