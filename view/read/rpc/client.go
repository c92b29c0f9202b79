package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Client is a remote instance. Safe for concurrent use.
type Client struct{ conn *grpc.ClientConn }

var _ read.Instance = (*Client)(nil)

// Options of a Client.
type Options struct {
	TLS  credentials.TransportCredentials                         // nil: plain text
	Dial func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP
}

// NewClient makes a client of the instance at host:port. It connects when first
// used, and again within a second when the instance comes back.
func NewClient(addr string, o Options) (*Client, error) {
	if o.TLS == nil {
		o.TLS = insecure.NewCredentials()
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(o.TLS),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{}), grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
	}
	if o.Dial != nil {
		options = append(options, grpc.WithContextDialer(o.Dial))
	}
	conn, err := grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		return nil, fmt.Errorf("instance at %s: %w", addr, err)
	}
	return &Client{conn: conn}, nil
}

// Close ends every call and the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Read asks the instance once.
func (c *Client) Read(ctx context.Context, requests []*read.Request) ([]*read.Answer, error) {
	var out frame
	if err := c.conn.Invoke(ctx, readMethod, &frame{encodeRequests(requests)}, &out); err != nil {
		return nil, err
	}
	answers, err := decodeAnswers(out.b)
	if err != nil {
		return nil, err
	}
	return answers, fitting(requests, answers)
}

// fitting says whether every answer has the form of its request, so that callers
// may rely on it whatever a peer sends.
func fitting(requests []*read.Request, answers []*read.Answer) error {
	if len(answers) != len(requests) {
		return fmt.Errorf("%w: %d answers to %d requests", errForm, len(answers), len(requests))
	}
	for i, a := range answers {
		r := requests[i]
		if a.Err != nil {
			continue
		}
		switch r.Op {
		case read.Get:
			if len(a.Rows) != len(r.Keys) {
				return fmt.Errorf("%w: %d rows for %d keys", errForm, len(a.Rows), len(r.Keys))
			}
		case read.Fetch:
			if len(a.Series) != len(r.Keys) {
				return fmt.Errorf("%w: %d series for %d keys", errForm, len(a.Series), len(r.Keys))
			}
		default:
			if slices.Contains(a.Rows, nil) {
				return fmt.Errorf("%w: a row is missing", errForm)
			}
		}
	}
	return nil
}

// Watch runs a stream until ctx ends, commands is closed or the instance ends
// it.
func (c *Client) Watch(ctx context.Context, commands <-chan read.WatchCommand, events func(read.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	desc := &grpc.StreamDesc{StreamName: "Watch", ServerStreams: true, ClientStreams: true}
	stream, err := c.conn.NewStream(ctx, desc, watchMethod)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case cmd, ok := <-commands:
				if !ok || stream.SendMsg(&frame{encodeCommand(cmd)}) != nil {
					cancel()
					return
				}
			}
		}
	})
	for {
		var f frame
		if err := stream.RecvMsg(&f); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		e, err := decodeEvent(f.b)
		if err != nil {
			return err
		}
		events(e)
	}
}
