package usage

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/urfave/cli/v3"
)

func TestOneLine(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		{"unknown flag", "prog do --to x --nope", "prog do: there is no flag -nope; see --help"},
		{"unknown flag of the program", "prog --nope", "prog: there is no flag -nope; see --help"},
		{"missing flag", "prog do", `prog do: required flag "to" not set; see --help`},
		{"missing value", "prog do --to", "prog do: flag needs an argument: --to; see --help"},
		{"no number", "prog do --to x --n many", `prog do: invalid value "many" for flag -n: want a whole number; see --help`},
		{"no boolean", "prog do --to x --b=perhaps", `prog do: invalid value "perhaps" for flag -b: want true or false; see --help`},
		{"unknown command", "prog undo", `prog: there is no command "undo"; see --help`},
		{"argument", "prog do --to x y", `prog do: takes no y; see --help`},
		{"help", "prog do --help", ""},
		{"help of the program", "prog --help", ""},
		{"nothing", "prog", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			root := OneLine(&cli.Command{
				Name: "prog", Writer: &out, ErrWriter: &errs, ExitErrHandler: func(context.Context, *cli.Command, error) {},
				Commands: []*cli.Command{{
					Name:   "do",
					Flags:  []cli.Flag{&cli.StringFlag{Name: "to", Required: true}, &cli.IntFlag{Name: "n"}, &cli.BoolFlag{Name: "b"}},
					Action: func(_ context.Context, c *cli.Command) error { return Errorf(c, "takes no %s", c.Args().First()) },
				}},
			})
			err := root.Run(t.Context(), strings.Fields(c.args))
			if c.want == "" {
				if err != nil || !strings.Contains(out.String(), "USAGE") {
					t.Errorf("got %v and %q, want the help", err, out.String())
				}
				return
			}
			var wrong *Error
			if !errors.As(err, &wrong) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if out.Len()+errs.Len() > 0 {
				t.Errorf("printed %q and %q", out.String(), errs.String())
			}
		})
	}
}
