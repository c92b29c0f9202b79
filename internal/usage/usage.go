// Package usage says in one line what is wrong with a command line: the
// toolbox and the applications share it.
package usage

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/urfave/cli/v3"
)

// Error is a command line that cannot be run.
type Error struct {
	Command string // as it is typed: the program, then the command
	Reason  string
}

func (e *Error) Error() string { return e.Command + ": " + e.Reason + "; see --help" }

// Errorf makes an Error of the command c.
func Errorf(c *cli.Command, format string, args ...any) error {
	return &Error{Command: c.FullName(), Reason: fmt.Sprintf(format, args...)}
}

// OneLine makes every mistake in the flags of root and of its commands an Error,
// without the help that the library prints before it, and so a command that
// does not exist.
func OneLine(root *cli.Command) *cli.Command {
	for _, c := range append([]*cli.Command{root}, root.Commands...) {
		c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
			return Errorf(c, "%s", plain(err))
		}
	}
	root.Action = func(_ context.Context, c *cli.Command) error {
		if c.Args().Present() {
			return Errorf(c, "there is no command %q", c.Args().First())
		}
		return cli.ShowRootCommandHelp(c)
	}
	return root
}

// plain rewords the library's messages. It makes them of text alone: their
// causes cannot be asked for.
func plain(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		return "there is no flag " + name
	}
	for conversion, want := range map[string]string{
		"strconv.ParseInt": "want a whole number", "strconv.ParseFloat": "want a number",
		"parse error": "want true or false",
	} {
		if before, _, ok := strings.Cut(text, conversion); ok {
			return before + want
		}
	}
	r := []rune(text)
	r[0] = unicode.ToLower(r[0])
	return string(r)
}
