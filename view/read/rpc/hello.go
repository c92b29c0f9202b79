package rpc

import (
	"context"

	"google.golang.org/grpc"
)

// Greeting says who answers at an address.
type Greeting struct {
	Instance string
	// Process tells processes of one name apart.
	Process uint64
}

func handleHello(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
	var in frame
	if err := decode(&in); err != nil {
		return nil, err
	}
	handle := func(context.Context, any) (any, error) {
		e := newEncoder()
		e.text(srv.(*Service).Greeting.Instance)
		e.uint(srv.(*Service).Greeting.Process)
		return &frame{e.b}, nil
	}
	if intercept == nil {
		return handle(ctx, &in)
	}
	return intercept(ctx, &in, &grpc.UnaryServerInfo{Server: srv, FullMethod: helloMethod}, handle)
}

// Hello asks who answers.
func (c *Client) Hello(ctx context.Context) (Greeting, error) {
	var out frame
	if err := c.conn.Invoke(ctx, helloMethod, &frame{newEncoder().b}, &out); err != nil {
		return Greeting{}, err
	}
	d := newDecoder(out.b)
	g := Greeting{Instance: d.text(), Process: d.uint()}
	return g, d.end()
}
