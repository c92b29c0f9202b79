package rpc

import (
	"context"
	"net"
	"testing"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// row answers every request with one row of some columns.
type row struct{}

func (row) Read(_ context.Context, requests []*read.Request) ([]*read.Answer, error) {
	answers := make([]*read.Answer, len(requests))
	for i, r := range requests {
		answers[i] = &read.Answer{
			Rows: []*read.Row{{Key: []byte("\x01DFW\x00"), Values: []view.Value{view.OfString("DFW"), view.OfInt(1103), view.OfInt(269), view.OfInt(10462), view.OfInt(298)}}},
			Part: read.Part{Partition: r.Partition, Instance: "a", Seq: 77, AsOf: 1_700_000_000_000},
		}
	}
	return answers, nil
}

func (row) Watch(context.Context, <-chan read.WatchCommand, func(read.Event)) error { return nil }

// BenchmarkHop is a lookup of one key at another instance, beside a bare echo of
// as many bytes over the same gRPC, both over loopback: compare the two.
func BenchmarkHop(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := grpc.NewServer(ServerOptions()...)
	Register(s, Service{Instance: row{}})
	request := []*read.Request{{Query: read.Query{Store: "airport-totals", Op: read.Get, Keys: [][]view.Value{{view.OfString("DFW")}}}}}
	answers, _ := row{}.Read(b.Context(), request)
	echo := &frame{encodeAnswers(answers)}
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "echo", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "Echo",
		Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var in frame
			return echo, decode(&in)
		},
	}}}, struct{}{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() { s.Stop(); <-served }()
	b.Run("echo", func(b *testing.B) {
		conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{})))
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		in := &frame{encodeRequests(request)}
		b.ReportAllocs()
		for b.Loop() {
			var out frame
			if err := conn.Invoke(b.Context(), "/echo/Echo", in, &out); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		c, err := NewClient(l.Addr().String(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Read(b.Context(), request); err != nil {
				b.Fatal(err)
			}
		}
	})
}
