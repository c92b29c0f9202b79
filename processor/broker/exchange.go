package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
)

// anyNode routes a request to whichever seed broker answers.
const anyNode = int32(-1)

// maxResponse bounds an answer. A fetch may exceed its byte limits by one
// batch, which message.max.bytes bounds on the broker.
const maxResponse = 256 << 20

// api is one request type at the version spoken here.
type api struct {
	key     protocol.ApiKey
	version int16
	flex    bool // flexible version: header v2 out, v1 back
}

// The versions are within what Kafka 4.x accepts (KIP-896) and what the older
// transaction protocol needs.
var (
	apiProduce         = api{protocol.Produce, 8, false}
	apiFetch           = api{protocol.Fetch, 13, true}
	apiListOffsets     = api{protocol.ListOffsets, 6, true}
	apiMetadata        = api{protocol.Metadata, 12, true}
	apiOffsetCommit    = api{protocol.OffsetCommit, 8, true}
	apiOffsetFetch     = api{protocol.OffsetFetch, 7, true}
	apiFindCoordinator = api{protocol.FindCoordinator, 3, true}
	apiJoinGroup       = api{protocol.JoinGroup, 7, true}
	apiHeartbeat       = api{protocol.Heartbeat, 4, true}
	apiLeaveGroup      = api{protocol.LeaveGroup, 4, true}
	apiSyncGroup       = api{protocol.SyncGroup, 5, true}
	apiDescribeGroups  = api{protocol.DescribeGroups, 5, true}
	apiCreateTopics    = api{protocol.CreateTopics, 5, true}
	apiDeleteTopics    = api{protocol.DeleteTopics, 4, true}
	apiDeleteRecords   = api{protocol.DeleteRecords, 2, true}
	apiInitProducerID  = api{protocol.InitProducerId, 4, true}
	apiAddPartitions   = api{protocol.AddPartitionsToTxn, 3, true}
	apiAddOffsets      = api{protocol.AddOffsetsToTxn, 3, true}
	apiEndTxn          = api{protocol.EndTxn, 3, true}
	apiTxnOffsetCommit = api{protocol.TxnOffsetCommit, 3, true}
	apiDescribeConfigs = api{protocol.DescribeConfigs, 4, true}
	apiDeleteGroups    = api{protocol.DeleteGroups, 2, true}
	// kafka-go has no name for it.
	apiDescribeProducers = api{61, 0, true}
)

// States of an exchange: exactly one of sending and abandoned is ever reached,
// so that a caller that stopped waiting knows whether the request may still
// take effect.
const (
	exchangeIdle int32 = iota
	exchangeSending
	exchangeAbandoned
)

// exchange is one request and its answer on a connection of kafka-go's pool:
// dialling, TLS, authentication and pooling stay with the transport, the bytes
// are ours. It implements protocol.RawExchanger and protocol.BrokerMessage.
type exchange struct {
	api    api
	node   int32
	id     int32
	frame  []byte // whole, a copy: the caller may change its body once send returned
	buffer []byte // reused for the answer where large enough
	ctx    context.Context
	state  atomic.Int32

	answer []byte // the frame, without its size
}

var (
	_ protocol.RawExchanger  = (*exchange)(nil)
	_ protocol.BrokerMessage = (*exchange)(nil)
)

func (x *exchange) ApiKey() protocol.ApiKey { return x.api.key } //nolint:revive // the name that protocol.Message gives it

// Required makes the transport hand over the connection.
func (x *exchange) Required(map[protocol.ApiKey]int16) bool { return true }

// Broker routes by id; the transport knows the address.
func (x *exchange) Broker(protocol.Cluster) (protocol.Broker, error) {
	return protocol.Broker{ID: x.node}, nil
}

// RawExchange writes the request and reads its answer. When the context ends
// meanwhile the connection is given up at once, so that no goroutine waits for
// a broker on behalf of nobody.
func (x *exchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if !x.state.CompareAndSwap(exchangeIdle, exchangeSending) {
		return nil, context.Canceled
	}
	if conn, ok := rw.(interface{ SetDeadline(time.Time) error }); ok {
		stop := context.AfterFunc(x.ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		if err := x.roundTrip(rw); err != nil {
			return nil, err
		}
		if !stop() { // the deadline above may still be on its way: not to be pooled
			return nil, x.ctx.Err()
		}
		return x, nil
	}
	return x, x.roundTrip(rw)
}

func (x *exchange) roundTrip(rw io.ReadWriter) error {
	if _, err := rw.Write(x.frame); err != nil {
		return err
	}
	var size [4]byte
	if _, err := io.ReadFull(rw, size[:]); err != nil {
		return noEOF(err)
	}
	n := int(int32(binary.BigEndian.Uint32(size[:])))
	if n < 4 || n > maxResponse {
		return fmt.Errorf("%w: answer of %d bytes", ErrCorrupt, n)
	}
	frame, err := readFrame(rw, x.buffer, n)
	if err != nil {
		return noEOF(err)
	}
	if got := int32(binary.BigEndian.Uint32(frame)); got != x.id {
		return fmt.Errorf("%w: answer to request %d, want %d", ErrCorrupt, got, x.id)
	}
	x.answer = frame
	return nil
}

// frame builds a request with its header and size.
func (c *Client) frame(a api, id int32, body []byte) []byte {
	f := encoder{b: make([]byte, 0, 32+len(c.cfg.ClientID)+len(body))}
	f.int32(0)
	f.int16(int16(a.key))
	f.int16(a.version)
	f.int32(id)
	f.string(c.cfg.ClientID) // never compact, in any header version
	f.flex = a.flex
	f.end()
	f.b = append(f.b, body...)
	binary.BigEndian.PutUint32(f.b, uint32(len(f.b)-4))
	return f.b
}

// decoder starts reading after the header of the answer.
func (x *exchange) decoder() *decoder {
	d := &decoder{b: x.answer[4:], flex: x.api.flex, frame: x.answer}
	d.end()
	return d
}

// readFrame reads n bytes, into buf where it is large enough. It grows as bytes
// arrive: a size alone allocates a megabyte at most.
func readFrame(r io.Reader, buf []byte, n int) ([]byte, error) {
	const step = 1 << 20
	if cap(buf) < n {
		buf = make([]byte, 0, min(n, max(step, cap(buf))))
	}
	buf = buf[:0]
	for len(buf) < n {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(n, 2*cap(buf)))
			copy(grown, buf)
			buf = grown
		}
		part := buf[len(buf):min(n, cap(buf))]
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, err
		}
		buf = buf[:len(buf)+len(part)]
	}
	return buf, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// request is what send needs beside the context.
type request struct {
	api     api
	node    int32
	body    []byte
	timeout time.Duration // default: the client's
	wait    time.Duration // added to the timeout: the broker may hold the answer back
	buffer  []byte        // for the answer; lost when send returns an error
}

// send makes one exchange, once. doubt is true when the request may have
// reached the broker and its answer is not known; a request that never left is
// not in doubt. Without an answer the error is the context's, an Error the
// transport met, or a *ConnError.
func (c *Client) send(ctx context.Context, r request) (d *decoder, doubt bool, err error) {
	if c.closed() {
		return nil, false, ErrClosed
	}
	if r.timeout == 0 {
		r.timeout = c.cfg.RequestTimeout
	}
	limited, cancel := context.WithTimeout(ctx, r.timeout+r.wait)
	defer cancel()
	id := c.sequence.Add(1)
	x := &exchange{
		api: r.api, node: r.node, id: id, frame: c.frame(r.api, id, r.body),
		buffer: r.buffer, ctx: limited,
	}
	resets := c.resets.Load()
	if _, err = c.transport.RoundTrip(limited, c.seeds, x); err == nil {
		d := x.decoder()
		return d, d.err != nil, d.err
	}
	doubt = !x.state.CompareAndSwap(exchangeIdle, exchangeAbandoned)
	switch {
	case ctx.Err() != nil:
		return nil, doubt, ctx.Err()
	case c.closed():
		return nil, doubt, ErrClosed
	case limited.Err() != nil:
		err = fmt.Errorf("no answer within %v", r.timeout+r.wait)
	}
	if doubt || errors.Is(err, kafka.BrokerNotAvailable) {
		// A connection broke, or the transport does not know the broker (yet). A
		// connection that could not be made says nothing about others.
		c.reset(resets)
	}
	return nil, doubt, c.connError(r.node, err)
}

// connError maps what the transport returns.
func (c *Client) connError(node int32, err error) error {
	var code kafka.Error
	if errors.As(err, &code) && code != kafka.BrokerNotAvailable {
		return Error(code)
	}
	return &ConnError{Node: node, Err: err}
}

// reset drops the pooled connections after one of them broke: a restarted
// broker breaks each of them once, and a new pool asks for the brokers anew. Of
// many requests that fail together only the first one resets.
func (c *Client) reset(seen int64) {
	if c.resets.CompareAndSwap(seen, seen+1) {
		c.transport.CloseIdleConnections()
	}
}

func (c *Client) closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done
}

// trackedConn is a connection that Close can end while it is in use.
type trackedConn struct {
	net.Conn
	client *Client
	heard  bool // the first bytes have been looked at; of the one reader
}

func (t *trackedConn) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	if n > 0 && !t.heard {
		t.heard = true
		if wrong := sniff(b[:n]); wrong != nil {
			return 0, wrong
		}
	}
	return n, err
}

func (t *trackedConn) Close() error {
	t.client.mu.Lock()
	delete(t.client.conns, t)
	t.client.mu.Unlock()
	return t.Conn.Close()
}

func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := c.cfg.Dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if c.cfg.TLS != nil {
		secured, err := c.secure(ctx, conn, address)
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		conn = secured
	}
	t := &trackedConn{Conn: conn, client: c}
	c.mu.Lock()
	done := c.done
	if !done {
		c.conns[t] = struct{}{}
	}
	c.mu.Unlock()
	if done {
		_ = conn.Close()
		return nil, ErrClosed
	}
	return t, nil
}
