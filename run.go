package streamgauge

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/streamgauge/streamgauge/internal/usage"
	"github.com/urfave/cli/v3"
)

func runCommand(app App) *cli.Command {
	return &cli.Command{
		Name:  "run",
		Usage: "run one instance against a Kafka",
		Description: "Every setting has a default; a YAML file (deploy/streamgauge.yml shows all) and then the\n" +
			"environment override it: STREAMGAUGE_KAFKA_BROKERS=host1:9092,host2:9092 sets kafka.brokers.",
		Flags:  configFlags(),
		Action: withConfig(app, Run),
	}
}

func configFlags() []cli.Flag {
	return []cli.Flag{&cli.StringFlag{Name: "config", Aliases: []string{"c"}, Usage: "read settings from `FILE`"}}
}

// withConfig reads the settings and runs.
func withConfig(app App, run func(context.Context, App, *Config) error) cli.ActionFunc {
	return func(ctx context.Context, c *cli.Command) error {
		if c.Args().Len() > 0 {
			return usage.Errorf(c, "takes no arguments, got %q", c.Args().First())
		}
		cfg, err := LoadConfig(app.Name, c.String("config"), os.Environ())
		if err != nil {
			return err
		}
		return run(ctx, app, cfg)
	}
}

// Run runs one instance of an application until ctx ends or it must not go on.
func Run(ctx context.Context, app App, cfg *Config) error {
	log := cfg.logger(os.Stderr)
	s, err := setupOf(app, cfg, log)
	if err != nil {
		return err
	}
	s.startOver = fmt.Sprintf("to start over, stop every instance and run: streamgauge reset --brokers %s --app %s --state %s --schema FILE, with the application's schema",
		strings.Join(cfg.Kafka.Brokers, ","), cfg.App, cfg.State.Dir)
	in, err := newInstance(s)
	if err != nil {
		return err
	}
	defer in.close()
	if err := in.preflight(ctx, s.topology); err != nil {
		return err
	}
	log.Info("instance starts", "version", version(), "instance", cfg.Instance, "http", "http://"+in.http.Addr().String(), "kafka", cfg.Kafka.Brokers)
	return in.run(ctx)
}

func titleOf(app App) string {
	if app.Title != "" {
		return app.Title
	}
	return app.Name
}
