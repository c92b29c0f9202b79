package streamgauge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/streamgauge/streamgauge/internal/usage"
	"github.com/urfave/cli/v3"
)

// healthCommand asks a probe, for images that have no other program to do it.
func healthCommand() *cli.Command {
	return &cli.Command{
		Name:      "health",
		Usage:     "ask a running instance whether it is alive, or ready",
		ArgsUsage: "[URL]",
		Description: "URL is that of a probe: http://127.0.0.1:8080/healthz (the default), or …/readyz. It ends with 0\n" +
			"when the answer is 200, else with 1 and the reason.",
		Flags: []cli.Flag{&cli.DurationFlag{Name: "timeout", Value: 3 * time.Second, Usage: "wait `TIME` for the answer"}},
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.Args().Len() > 1 {
				return usage.Errorf(c, "takes one URL, got %q too", c.Args().Get(1))
			}
			url := c.Args().First()
			if url == "" {
				url = "http://127.0.0.1:8080/healthz"
			}
			ctx, cancel := context.WithTimeout(ctx, c.Duration("timeout"))
			defer cancel()
			return probe(ctx, url)
		},
	}
}

// probe asks once; an answer other than 200 is an error.
func probe(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("health: %s says %s: %s", url, answer.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
