package main

import (
	"context"
	"fmt"
	"os"

	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/internal/usage"
	"github.com/urfave/cli/v3"
)

func tokenCommand() *cli.Command {
	return &cli.Command{
		Name:      "token",
		Usage:     "make a token for a machine",
		ArgsUsage: "NAME SCOPE…",
		Description: "Prints the token once; only its hash goes into the tokens file that auth.tokensFile names.\n" +
			"With --file the line is added to the file; instances see it within a second.",
		Flags: []cli.Flag{&cli.StringFlag{Name: "file", Usage: "add the line to `FILE`"}},
		Action: func(_ context.Context, c *cli.Command) error {
			args := c.Args().Slice()
			if len(args) < 2 {
				return usage.Errorf(c, "takes a name and at least one scope, such as: token grafana airport-totals:read")
			}
			secret, line, err := auth.GenerateToken(args[0], args[1:])
			if err != nil {
				return err
			}
			if path := c.String("file"); path != "" {
				if err := appendLine(path, line); err != nil {
					return err
				}
				fmt.Fprintf(c.Root().ErrWriter, "added to %s\n", path)
			} else {
				fmt.Fprintf(c.Root().ErrWriter, "line for the tokens file:\n%s\n\ntoken:\n", line)
			}
			fmt.Fprintln(c.Root().Writer, secret)
			return nil
		},
	}
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
