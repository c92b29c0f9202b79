package processor

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
)

// The Kafka requests that a worker sends, by their API key.
var requestNames = map[int16]string{
	0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch",
	10: "FindCoordinator", 11: "JoinGroup", 12: "Heartbeat", 14: "SyncGroup", 22: "InitProducerID",
	24: "AddPartitionsToTxn", 25: "AddOffsetsToTxn", 26: "EndTxn", 28: "TxnOffsetCommit",
}

// fate is what becomes of one request.
type fate int

const (
	delivered  fate = iota
	unsent          // the connection breaks before the broker has it
	unanswered      // the broker does it, and the connection breaks before the answer
	silence         // the broker does it, and no answer ever comes
)

// wire is the way from one instance to the brokers, on which requests may get lost.
// Safe for concurrent use.
type wire struct {
	way func(ctx context.Context, network, address string) (net.Conn, error)

	mu sync.Mutex
	// judge decides on each request, by its API key; nil: all are delivered.
	judge func(key int16) fate
}

func (w *wire) set(judge func(key int16) fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge = judge
}

func (w *wire) fateOf(key int16) fate {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.judge == nil {
		return delivered
	}
	return w.judge(key)
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := w.way(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &wireConn{Conn: c, wire: w}, nil
}

// wireConn carries one request at a time, as the client's pool does.
type wireConn struct {
	net.Conn
	wire *wire
	fate fate
}

var errLost = errors.New("connection lost")

func (c *wireConn) Write(p []byte) (int, error) {
	if len(p) > 8 {
		c.fate = c.wire.fateOf(int16(binary.BigEndian.Uint16(p[4:])))
	}
	if c.fate == unsent {
		c.Conn.Close()
		return 0, errLost
	}
	return c.Conn.Write(p)
}

func (c *wireConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		switch {
		case err != nil || c.fate == delivered:
			return n, err
		case c.fate == unanswered: // what was read proves that the broker has done it
			c.Conn.Close()
			return 0, io.ErrUnexpectedEOF
		}
	}
}
