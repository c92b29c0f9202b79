package rpc

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/streamgauge/streamgauge/view/read"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// beatEvery is the time between signs of life of a stream of routes.
const beatEvery = time.Second

// Liveness is what a RouteSource may say beside its routes: whether they are to
// be believed. While they are not, the instance serves none: a follower finds
// another.
type Liveness interface{ Live() bool }

// handleRoutes sends the table there is, then each newer one, and a beat each
// second, until the follower goes.
func handleRoutes(srv any, stream grpc.ServerStream) error {
	source := srv.(*Service).Routes
	var f frame
	if err := stream.RecvMsg(&f); err != nil {
		return err
	}
	if source == nil {
		return status.Error(codes.Unimplemented, "this instance serves no routes")
	}
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	var sent *read.Routes
	for {
		if l, ok := source.(Liveness); ok && !l.Live() {
			return status.Error(codes.Unavailable, "this instance is not in touch with the group")
		}
		table, newer := source.Routes()
		beat := table == sent || len(table.Instances) == 0 // nobody has joined yet
		if beat {
			table = nil
		}
		if err := stream.SendMsg(&frame{encodeRoutes(table)}); err != nil {
			return err
		}
		if !beat {
			sent = table
		}
		select {
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-newer:
		case <-tick.C:
		}
	}
}

// Routes follows the instance's routes until ctx ends or the stream does. each
// is called with every table, and with nil for a sign of life, about once a
// second.
func (c *Client) Routes(ctx context.Context, each func(*read.Routes)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{StreamName: "Routes", ServerStreams: true}, routesMethod)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(&frame{newEncoder().b}); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		var f frame
		if err := stream.RecvMsg(&f); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		table, err := decodeRoutes(f.b)
		if err != nil {
			return err
		}
		each(table)
	}
}

// encodeRoutes writes a table; nil is a beat. Copies name instances by their
// place in the list of peers.
func encodeRoutes(r *read.Routes) []byte {
	e := newEncoder()
	e.bool(r != nil)
	if r == nil {
		return e.b
	}
	e.int(r.Generation)
	ids := slices.Sorted(maps.Keys(r.Instances))
	place := make(map[string]int, len(ids))
	e.list(len(ids))
	for i, id := range ids {
		p := r.Instances[id]
		place[id] = i
		e.text(id)
		e.text(p.Addr)
		e.text(p.HTTP)
		e.text(p.Rack)
	}
	e.list(len(r.Partitions))
	for _, sub := range slices.Sorted(maps.Keys(r.Partitions)) {
		e.text(sub)
		e.int(int64(r.Partitions[sub]))
	}
	e.list(len(r.Copies))
	for _, sub := range slices.Sorted(maps.Keys(r.Copies)) {
		e.text(sub)
		e.list(len(r.Copies[sub]))
		for _, copies := range r.Copies[sub] {
			e.copies(copies, place)
		}
	}
	return e.b
}

// copies leaves out those at an instance without an address: nobody could ask it.
func (e *encoder) copies(copies []read.Copy, place map[string]int) {
	known := 0
	for _, c := range copies {
		if _, ok := place[c.Instance]; ok {
			known++
		}
	}
	e.list(known)
	for _, c := range copies {
		if i, ok := place[c.Instance]; ok {
			e.int(int64(i))
			e.int(int64(c.Role))
		}
	}
}

func decodeRoutes(b []byte) (*read.Routes, error) {
	d := newDecoder(b)
	if !d.bool() {
		return nil, d.end()
	}
	r := &read.Routes{
		Generation: d.small(maxGeneration), Instances: make(map[string]read.Peer),
		Partitions: make(map[string]int32), Copies: make(map[string][][]read.Copy),
	}
	var ids []string
	for range d.list() {
		p := read.Peer{ID: d.name(), Addr: d.name(), HTTP: d.name(), Rack: d.name()}
		if d.err == nil && len(ids) >= maxInstances {
			d.err = errForm
		}
		if d.err != nil {
			break
		}
		ids = append(ids, p.ID)
		r.Instances[p.ID] = p
	}
	for range d.list() {
		sub := d.text()
		r.Partitions[sub] = int32(d.small(maxPartitions))
		if d.err != nil {
			break
		}
	}
	for range d.list() {
		sub := d.text()
		n := d.list()
		if d.err == nil && n != int(r.Partitions[sub]) {
			d.err = errForm // copies of partitions that are not there, or none of some that are
		}
		if d.err != nil {
			break
		}
		partitions := make([][]read.Copy, 0, min(n, firstRoom))
		for range n {
			if partitions = append(partitions, d.copies(ids)); d.err != nil {
				break
			}
		}
		if r.Copies[sub] = partitions; d.err != nil {
			break
		}
	}
	return r, d.end()
}

// Bounds of what a table may say: a gateway makes room for each partition.
const (
	maxPartitions = 1 << 16
	maxInstances  = 10_000
	maxGeneration = 1 << 50
	maxName       = 256
)

// name reads a name or an address: they go into logs, metrics and pages.
func (d *decoder) name() string {
	s := d.text()
	if d.err == nil && (len(s) > maxName || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl)) {
		d.err = errForm
	}
	return s
}

func (d *decoder) copies(ids []string) []read.Copy {
	var copies []read.Copy
	for range d.list() {
		i, role := d.small(math.MaxInt32), d.small(int64(read.Global))
		if d.err == nil && i >= int64(len(ids)) {
			d.err = errForm
		}
		if d.err != nil {
			return nil
		}
		copies = append(copies, read.Copy{Instance: ids[i], Role: read.Role(role)})
	}
	return copies
}
