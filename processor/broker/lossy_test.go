package broker

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kfake"
)

// lossyNet loses answers: the broker does the work and its answer never comes.
type lossyNet struct {
	mu   sync.Mutex
	lose map[protocol.ApiKey]int // answers to lose
	lost int
}

func (n *lossyNet) loseNext(key protocol.ApiKey, count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose[key] = count
}

func (n *lossyNet) losses() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost
}

func (n *lossyNet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &lossyConn{Conn: conn, net: n}, nil
}

// lossyConn carries one request at a time, as kafka-go's pool does.
type lossyConn struct {
	net.Conn
	net  *lossyNet
	lose bool
}

func (c *lossyConn) Write(p []byte) (int, error) {
	if len(p) > 8 {
		key := protocol.ApiKey(binary.BigEndian.Uint16(p[4:]))
		c.net.mu.Lock()
		if c.net.lose[key] > 0 {
			c.net.lose[key]--
			c.net.lost++
			c.lose = true
		}
		c.net.mu.Unlock()
	}
	return c.Conn.Write(p)
}

func (c *lossyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.lose { // what was read proves that the broker has done it
		return 0, io.EOF
	}
	return n, err
}

// lossyCluster is a cluster whose client may lose answers.
func lossyCluster(t testing.TB) (*kfake.Cluster, *Client, *lossyNet) {
	t.Helper()
	fake, _ := cluster(t)
	n := &lossyNet{lose: make(map[protocol.ApiKey]int)}
	c, err := New(Config{Brokers: fake.ListenAddrs(), Dial: n.dial, RequestTimeout: 2 * time.Second, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return fake, c, n
}
