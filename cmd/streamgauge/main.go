// Command streamgauge is the toolbox: it generates a project's code, checks
// schemas, and helps with topics, tokens and an embedded broker. It never
// imports generated code.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/streamgauge/streamgauge/internal/usage"
	"github.com/urfave/cli/v3"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().Run(ctx, os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func command() *cli.Command {
	return usage.OneLine(&cli.Command{
		Name:  "streamgauge",
		Usage: "live GraphQL views over Kafka topics: the toolbox",
		Commands: []*cli.Command{
			initCommand(), generateCommand(), checkCommand(), topologyCommand(),
			loadCommand(), brokerCommand(), tokenCommand(), resetCommand(),
		},
		ExitErrHandler: func(context.Context, *cli.Command, error) {}, // main prints it
	})
}
