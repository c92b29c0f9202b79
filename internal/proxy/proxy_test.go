package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers each line with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var open []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				for _, c := range open {
					c.Close()
				}
				return
			}
			open = append(open, c)
			go func() {
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String()
}

func start(t *testing.T, origin func(net.Addr) string) *Proxy {
	t.Helper()
	p, err := New(Config{Listen: "127.0.0.1:0", Target: echo(t), Origin: origin})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- p.Run() }()
	t.Cleanup(func() {
		p.Close()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return p
}

type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, p *Proxy) *conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &conn{c, bufio.NewReader(c)}
}

// say sends a line and reads the answer within a time.
func (c *conn) say(line string, within time.Duration) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	return c.hear(within)
}

func (c *conn) hear(within time.Duration) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return "", err
	}
	s, err := c.r.ReadString('\n')
	return strings.TrimSuffix(s, "\n"), err
}

func TestCutHoldsAndHealDelivers(t *testing.T) {
	p := start(t, nil)
	c := dial(t, p)
	if got, err := c.say("one", 5*time.Second); got != "one" {
		t.Fatal(got, err)
	}
	p.Set(Fault{Kind: Cut})
	if got, err := c.say("two", 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("through a cut came %q, %v", got, err)
	}
	late := dial(t, p) // neither refused nor answered
	if got, err := late.say("three", 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("through a cut came %q, %v", got, err)
	}
	p.Heal()
	if got, err := c.hear(5 * time.Second); got != "two" {
		t.Fatal(got, err)
	}
	if got, err := late.hear(5 * time.Second); got != "three" {
		t.Fatal(got, err)
	}
}

func TestReset(t *testing.T) {
	p := start(t, nil)
	c := dial(t, p)
	if got, err := c.say("one", 5*time.Second); got != "one" {
		t.Fatal(got, err)
	}
	p.Set(Fault{Kind: Reset})
	if _, err := c.hear(5 * time.Second); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("got %v, want a reset", err)
	}
	if got, err := dial(t, p).say("two", 5*time.Second); err == nil {
		t.Fatalf("a new connection brought %q", got)
	}
	p.Heal()
	if got, err := dial(t, p).say("three", 5*time.Second); got != "three" {
		t.Fatal(got, err)
	}
}

func TestDelay(t *testing.T) {
	p := start(t, nil)
	p.Set(Fault{Kind: Delay, Delay: 60 * time.Millisecond})
	c := dial(t, p)
	began := time.Now()
	if got, err := c.say("one", 5*time.Second); got != "one" {
		t.Fatal(got, err)
	}
	if took := time.Since(began); took < 120*time.Millisecond {
		t.Errorf("there and back took %s, want twice the delay", took)
	}
}

func TestRuleOfOneOrigin(t *testing.T) {
	names := make(chan string, 2)
	names <- "a"
	names <- "b"
	p := start(t, func(net.Addr) string { return <-names })
	a := dial(t, p)
	if got, err := a.say("one", 5*time.Second); got != "one" {
		t.Fatal(got, err)
	}
	b := dial(t, p)
	if got, err := b.say("one", 5*time.Second); got != "one" {
		t.Fatal(got, err)
	}
	p.SetFrom("a", Fault{Kind: Cut})
	if got, err := a.say("two", 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("through a cut came %q, %v", got, err)
	}
	if got, err := b.say("two", 5*time.Second); got != "two" {
		t.Fatal(got, err)
	}
	p.SetFrom("a", Fault{})
	if got, err := a.hear(5 * time.Second); got != "two" {
		t.Fatal(got, err)
	}
}

func TestEndsPass(t *testing.T) {
	p := start(t, nil)
	c := dial(t, p)
	if _, err := io.WriteString(c, "last words"); err != nil {
		t.Fatal(err)
	}
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c.r); string(b) != "last words" || err != nil {
		t.Fatalf("%q, %v", b, err)
	}
}

// An end that comes while the way is cut arrives after it.
func TestEndWaitsBehindCut(t *testing.T) {
	p := start(t, nil)
	c := dial(t, p)
	if got, err := c.say("one", 5*time.Second); got != "one" {
		t.Fatal(got, err)
	}
	p.Set(Fault{Kind: Cut})
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.hear(50 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("an end came through a cut: %v", err)
	}
	p.Heal()
	if _, err := c.hear(5 * time.Second); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want the end", err)
	}
}

func TestTargetGone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	p, err := New(Config{Listen: "127.0.0.1:0", Target: addr})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- p.Run() }()
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		defer c.Close()
		if got, err := (&conn{c, bufio.NewReader(c)}).say("one", 5*time.Second); err == nil {
			t.Errorf("nobody answered %q", got)
		}
	}
	p.Close()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

func TestProcessOf(t *testing.T) {
	found := make(chan int, 1)
	p := start(t, func(from net.Addr) string {
		found <- ProcessOf(from, []int{1 << 30, os.Getpid()})
		return ""
	})
	if got, err := dial(t, p).say("one", 5*time.Second); got != "one" {
		t.Fatal(got, err)
	}
	want := os.Getpid()
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		want = 0
	}
	if got := <-found; got != want {
		t.Errorf("connection is of process %d, want %d", got, want)
	}
}
