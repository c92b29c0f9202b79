package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

const (
	serviceName  = "streamgauge.Instance"
	readMethod   = "/" + serviceName + "/Read"
	watchMethod  = "/" + serviceName + "/Watch"
	routesMethod = "/" + serviceName + "/Routes"
	helloMethod  = "/" + serviceName + "/Hello"
)

const (
	// maxMessage bounds an answer in bytes, and maxRequest what is asked.
	maxMessage = 64 << 20
	maxRequest = 4 << 20
	// maxStreams bounds the calls under way on one connection.
	maxStreams = 2000
	// maxKeys bounds the keys of one call, and maxRequests its requests.
	maxKeys     = 200_000
	maxRequests = 100_000
)

// frame is a message as bytes; the codec passes it through.
type frame struct{ b []byte }

// codec leaves the encoding to this package.
type codec struct{}

var _ encoding.Codec = codec{}

func (codec) Name() string { return "streamgauge" }

func (codec) Marshal(v any) ([]byte, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("a message of type %T", v)
	}
	return f.b, nil
}

func (codec) Unmarshal(b []byte, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("a message of type %T", v)
	}
	f.b = append(f.b[:0], b...)
	return nil
}

// ServerOptions are what a grpc.Server needs for Register.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodec(codec{}),
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxSendMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxStreams),
		grpc.UnaryInterceptor(recovered),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
			defer failed(&err)
			return handle(srv, stream)
		}),
		// Clients ping every ten seconds; one that is gone without a word must not
		// keep its watch for ever.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 15 * time.Second, Timeout: 5 * time.Second}),
	}
}

// recovered keeps what a peer asks from ending the process.
func recovered(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (_ any, err error) {
	defer failed(&err)
	return handle(ctx, req)
}

// failed makes a panic the error of its call.
func failed(err *error) {
	if v := recover(); v != nil {
		*err = status.Errorf(codes.Internal, "panic: %v", v)
	}
}

// Service is what a server answers with. Instance is required.
type Service struct {
	Instance read.Instance
	// Routes are sent to those who follow them; a Liveness says when not to. nil:
	// none.
	Routes   read.RouteSource
	Greeting Greeting
	// Status is what the instance tells of itself, a JSON object; nil: nothing.
	Status func() ([]byte, error)
}

// Register has the server answer with svc.
func Register(s grpc.ServiceRegistrar, svc Service) {
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "Read", Handler: handleRead},
			{MethodName: "Hello", Handler: handleHello},
			{MethodName: "Status", Handler: handleStatus},
		},
		Streams: []grpc.StreamDesc{
			{StreamName: "Watch", Handler: handleWatch, ServerStreams: true, ClientStreams: true},
			{StreamName: "Routes", Handler: handleRoutes, ServerStreams: true},
		},
	}, &svc)
}

func handleRead(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
	var in frame
	if err := decode(&in); err != nil {
		return nil, err
	}
	handle := func(ctx context.Context, req any) (any, error) {
		requests, err := decodeRequests(req.(*frame).b)
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		answers, err := srv.(*Service).Instance.Read(ctx, requests)
		if err != nil {
			return nil, status.FromContextError(err).Err()
		}
		return &frame{encodeAnswers(answers)}, nil
	}
	if intercept == nil {
		return handle(ctx, &in)
	}
	return intercept(ctx, &in, &grpc.UnaryServerInfo{Server: srv, FullMethod: readMethod}, handle)
}

func handleWatch(srv any, stream grpc.ServerStream) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	commands := make(chan read.WatchCommand)
	// It ends when this handler has returned, and its stream with it.
	go func() {
		defer cancel()
		defer close(commands)
		for {
			var f frame
			if stream.RecvMsg(&f) != nil {
				return
			}
			c, err := decodeCommand(f.b)
			if err != nil {
				return
			}
			select {
			case commands <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	err := srv.(*Service).Instance.Watch(ctx, commands, func(e read.Event) {
		if stream.SendMsg(&frame{encodeEvent(e)}) != nil {
			cancel()
		}
	})
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}
