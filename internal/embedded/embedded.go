// Package embedded is the broker that comes with the program: for the demo, for
// trying things out and for tests. It speaks Kafka's protocol in process and
// keeps its data in a folder. It is no Kafka: one node, no replication.
package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Options of Start.
type Options struct {
	Dir    string // of its data; "": memory alone
	Listen string // host:port; "": a port of loopback that is free
}

// Broker is a running embedded broker.
type Broker struct {
	cluster *kfake.Cluster
	lock    *os.File
}

// DamagedError says that the data in a folder cannot be read.
type DamagedError struct {
	Dir string
	Err error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the embedded broker's data in %s is damaged (%v): delete that folder and load its records again", e.Dir, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// Start starts a broker. It fails with a DamagedError where the folder has data
// that cannot be read.
func Start(o Options) (*Broker, error) {
	b := &Broker{}
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.ClusterID("streamgauge"), kfake.GroupMinSessionTimeout(time.Second)}
	if o.Dir != "" {
		if err := b.lockDir(o.Dir); err != nil {
			return nil, err
		}
		opts = append(opts, kfake.DataDir(o.Dir))
	}
	if o.Listen != "" {
		listen, err := listenOn(o.Listen)
		if err != nil {
			b.unlock()
			return nil, err
		}
		opts = append(opts, listen...)
	}
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		b.unlock()
		return nil, startError(o.Dir, err)
	}
	b.cluster = c
	return b, nil
}

// startError tells by its text, there being nothing else, what kfake found when
// it read its files.
func startError(dir string, err error) error {
	if strings.HasPrefix(err.Error(), "loading persisted state: ") && !errors.Is(err, fs.ErrPermission) {
		return &DamagedError{Dir: dir, Err: errors.Unwrap(err)}
	}
	return fmt.Errorf("start the embedded broker: %w", err)
}

func listenOn(addr string) ([]kfake.Opt, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: want host:port", addr)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: want a port from 0 to 65535", addr)
	}
	if host != "" && host != "127.0.0.1" && host != "localhost" {
		return nil, fmt.Errorf("listen address %q: the embedded broker listens on 127.0.0.1 only", addr)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d is in use: stop what uses it, or choose another", n)
	}
	if err != nil {
		return nil, fmt.Errorf("choose another port: %w", err)
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	return []kfake.Opt{kfake.Ports(int(n))}, nil
}

func (b *Broker) lockDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("broker directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("broker directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return fmt.Errorf("broker directory %s is in use by another process: stop it, or choose another directory", dir)
	}
	b.lock = f
	return nil
}

func (b *Broker) unlock() {
	if b.lock != nil {
		b.lock.Close()
		b.lock = nil
	}
}

// Addrs are the broker's addresses, host:port.
func (b *Broker) Addrs() []string { return b.cluster.ListenAddrs() }

// Close stops the broker; its data is on disk afterwards. It may be called
// twice.
func (b *Broker) Close() {
	if b.cluster != nil {
		b.cluster.Close()
		b.cluster = nil
	}
	b.unlock()
}
