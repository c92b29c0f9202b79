package simnet

import (
	"bytes"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// conn is one end of a connection. Its queue holds what the peer wrote. All of
// its state is guarded by the network's lock.
type conn struct {
	host          *Host
	peer          *conn
	id            uint64
	local, remote addr

	written uint64    // messages
	last    time.Time // when the newest message written arrives: order is kept
	queue   []message
	ended   bool // the peer has closed
	reset   bool // by a kill, here or there
	closed  bool // here

	readBy, writeBy time.Time
	changed         chan struct{} // closed, and made anew, at every change
}

// message is bytes on their way.
type message struct {
	at    time.Time
	bytes []byte
}

// wake is called with the lock held.
func (c *conn) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *conn) Read(b []byte) (int, error) {
	for {
		c.host.gate()
		n, next, err := c.read(b)
		if n > 0 || err != nil {
			return n, err
		}
		next.await()
	}
}

// event is when to look at a connection again.
type event struct {
	changed <-chan struct{}
	at      time.Time // zero: not before a change
}

func (e event) await() {
	if e.at.IsZero() {
		<-e.changed
		return
	}
	t := time.NewTimer(time.Until(e.at))
	defer t.Stop()
	select {
	case <-e.changed:
	case <-t.C:
	}
}

// read reads what has arrived; nothing and no error: look again then.
func (c *conn) read(b []byte) (int, event, error) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	now := time.Now()
	next := event{changed: c.changed, at: c.readBy}
	switch {
	case c.closed:
		return 0, next, net.ErrClosed
	case c.host.dead:
		return 0, next, syscall.ECONNRESET
	case len(c.queue) > 0 && !c.queue[0].at.After(now):
		m := &c.queue[0]
		n := copy(b, m.bytes)
		if m.bytes = m.bytes[n:]; len(m.bytes) == 0 {
			c.queue = c.queue[1:]
		}
		return n, next, nil
	case len(c.queue) == 0 && c.reset:
		return 0, next, syscall.ECONNRESET
	case len(c.queue) == 0 && c.ended:
		return 0, next, io.EOF
	case !c.readBy.IsZero() && !c.readBy.After(now):
		return 0, next, os.ErrDeadlineExceeded
	}
	if len(c.queue) > 0 && (next.at.IsZero() || c.queue[0].at.Before(next.at)) {
		next.at = c.queue[0].at
	}
	return 0, next, nil
}

func (c *conn) Write(b []byte) (int, error) {
	c.host.gate()
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.reset:
		return 0, syscall.EPIPE
	case !c.writeBy.IsZero() && !c.writeBy.After(now):
		return 0, os.ErrDeadlineExceeded
	case c.peer.host.dead:
		return len(b), nil // into the void
	case c.peer.closed:
		return 0, syscall.EPIPE
	}
	c.written++
	at := now.Add(n.latency(c.id, c.written))
	if at.Before(c.last) {
		at = c.last
	}
	c.last = at
	c.peer.queue = append(c.peer.queue, message{at, bytes.Clone(b)})
	c.peer.wake()
	return len(b), nil
}

func (c *conn) Close() error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	delete(c.host.conns, c)
	if !c.host.dead {
		c.peer.ended = true
		c.peer.wake()
	}
	c.wake()
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	c.deadlines(&t, &t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.deadlines(&t, nil)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.deadlines(nil, &t)
	return nil
}

func (c *conn) deadlines(read, write *time.Time) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if read != nil {
		c.readBy = *read
	}
	if write != nil {
		c.writeBy = *write
	}
	c.wake()
}
