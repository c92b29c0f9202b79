package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const statusMethod = "/" + serviceName + "/Status"

// maxStatus bounds what an instance tells of itself, in bytes: some kilobytes for
// a hundred tasks.
const maxStatus = 8 << 20

func handleStatus(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
	var in frame
	if err := decode(&in); err != nil {
		return nil, err
	}
	handle := func(context.Context, any) (any, error) {
		tell := srv.(*Service).Status
		if tell == nil {
			return nil, status.Error(codes.Unimplemented, "this instance does not tell of itself")
		}
		text, err := tell()
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		e := newEncoder()
		e.bytes(text)
		return &frame{e.b}, nil
	}
	if intercept == nil {
		return handle(ctx, &in)
	}
	return intercept(ctx, &in, &grpc.UnaryServerInfo{Server: srv, FullMethod: statusMethod}, handle)
}

// Status asks the instance what it tells of itself, for people: a JSON object,
// whose members releases may add to.
func (c *Client) Status(ctx context.Context) ([]byte, error) {
	var out frame
	if err := c.conn.Invoke(ctx, statusMethod, &frame{newEncoder().b}, &out, grpc.MaxCallRecvMsgSize(maxStatus)); err != nil {
		return nil, err
	}
	d := newDecoder(out.b)
	text := d.bytes()
	return text, d.end()
}
