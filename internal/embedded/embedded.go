// Package embedded is the broker that comes with the program: for the demo, for
// trying things out and for tests. It speaks Kafka's protocol in process and
// keeps its data in a folder. It is no Kafka: one node, no replication.
package embedded

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
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

// Start starts a broker.
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
		return nil, fmt.Errorf("start the embedded broker: %w", err)
	}
	b.cluster = c
	return b, nil
}

func listenOn(addr string) ([]kfake.Opt, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: want host:port", addr)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: want a port number", addr)
	}
	if host != "" && host != "127.0.0.1" && host != "localhost" {
		return nil, fmt.Errorf("listen address %q: the embedded broker listens on 127.0.0.1 only", addr)
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, fmt.Errorf("port %d is in use: stop what uses it or choose another (%w)", n, err)
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	return []kfake.Opt{kfake.Ports(n)}, nil
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
