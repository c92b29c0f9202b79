package schema

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// wrongCase is a section of testdata/wrong.txt: a schema and its mistakes.
type wrongCase struct{ name, text, want string }

func wrongCases(t *testing.T) []wrongCase {
	t.Helper()
	data, err := os.ReadFile("testdata/wrong.txt")
	if err != nil {
		t.Fatal(err)
	}
	var cases []wrongCase
	for _, section := range strings.Split("\n"+string(data), "\n=== ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		text, want, ok := strings.Cut(body+"\n", "\n---\n")
		if !ok {
			t.Fatalf("section %q has no ---", name)
		}
		cases = append(cases, wrongCase{name, text + "\n", strings.TrimRight(want, "\n")})
	}
	return cases
}

// Every wrong schema is refused with exactly the messages beside it.
func TestWrong(t *testing.T) {
	cases := wrongCases(t)
	if len(cases) < 40 {
		t.Fatalf("%d wrong schemas, want 40 or more", len(cases))
	}
	var out strings.Builder
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := mistakesOf(t, c.text)
			if !*update && got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			out.WriteString("=== " + c.name + "\n" + c.text + "---\n" + got + "\n")
		})
	}
	if *update {
		if err := os.WriteFile("testdata/wrong.txt", []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func mistakesOf(t *testing.T, text string) string {
	t.Helper()
	_, err := Load("w.graphqls", []byte(text))
	var m Mistakes
	if !errors.As(err, &m) {
		t.Fatalf("Load gave %v, want Mistakes", err)
	}
	return m.Error()
}
