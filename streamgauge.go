// Package streamgauge wires an application: an embedded or a real Kafka, a
// worker, a gateway, and the HTTP edge with its pages. A program of the user's
// calls Main with its generated code and is complete.
//
//	streamgauge.go  App, Main: the commands of an application
//	config.go       Config: a YAML file with environment overrides
//	configcheck.go  what is allowed in it
//	edge.go         gateway and HTTP, which every instance has; stopping
//	instance.go     one instance, wired: an edge with a worker
//	reach.go        whether others reach it where it says
//	preflight.go    what Kafka must let it do
//	run.go          the run command
//	alone.go        the gateway command: an edge without a worker
//	demo.go         the demo command: broker and instances in one process
//	democluster.go  its instances, stopped and started
//	demotokens.go   its tokens
//	demodata.go     the records of the demo, loaded once and at a pace
//	api.go          what the dashboard asks besides GraphQL
//	overview.go     how every instance is, by asking each
//	health.go       the health command: a probe for containers
package streamgauge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // zones must be known in images without /usr/share/zoneinfo

	"github.com/99designs/gqlgen/graphql"
	"github.com/streamgauge/streamgauge/internal/usage"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/urfave/cli/v3"
)

// App is an application: what is particular to it.
type App struct {
	// Name names the Kafka group and prefixes every internal topic.
	Name  string
	Title string // of the dashboard; the name when empty
	// Schema is the text of the schema as generated code carries it, and New
	// makes the executable schema over views: SchemaText and New of the
	// generated package.
	Schema string
	New    func(read.Views) graphql.ExecutableSchema
	// Demo is what the demo command loads; nil: there is no such command.
	Demo *Demo
}

// Demo is what a demo shows.
type Demo struct {
	Tables []Dataset
	Events Dataset
	// Query is printed for people to paste.
	Query string
	// Limited are the stores that the limited token may read.
	Limited []string
}

// Dataset is JSON lines for a topic.
type Dataset struct {
	Topic string
	// Key is the field with the Kafka key; "": records without a key, dealt to
	// the partitions in turn.
	Key string
	// Time is the field with the event time, RFC 3339, which a demo may shift;
	// "": none.
	Time string
	Open func() (io.ReadCloser, error)
}

// Main runs the application's commands and exits the process: 0 when all went
// well, 1 with one line on standard error otherwise.
func Main(app App) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(app).Run(ctx, os.Args)
	stop()
	var wrong *usage.Error
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return
	case errors.As(err, &wrong):
		fmt.Fprintln(os.Stderr, err)
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", app.Name, err)
	}
	os.Exit(1)
}

func command(app App) *cli.Command {
	c := &cli.Command{
		Name:  app.Name,
		Usage: "live GraphQL views over Kafka topics, by Streamgauge",
		Commands: []*cli.Command{
			runCommand(app), gatewayCommand(app), healthCommand(),
			{
				Name: "version", Usage: "print the version",
				Action: func(_ context.Context, c *cli.Command) error {
					_, err := fmt.Fprintln(c.Root().Writer, app.Name, version())
					return err
				},
			},
		},
		ExitErrHandler: func(context.Context, *cli.Command, error) {}, // Main prints it
	}
	if app.Demo != nil {
		c.Commands = append([]*cli.Command{demoCommand(app)}, c.Commands...)
	}
	return usage.OneLine(c)
}

// Version is the release; a build from a checkout adds its commit.
const Version = "0.1.0"

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return Version + "+" + s.Value[:12]
		}
	}
	return Version
}
