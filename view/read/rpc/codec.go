package rpc

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/tinylib/msgp/msgp"
)

// firstRoom bounds the memory set aside because a message says that it needs it.
const firstRoom = 1024

// wireVersion is the format of every message.
const wireVersion = 1

var (
	errVersion = errors.New("a message of another format version")
	errForm    = errors.New("malformed message")
)

// encoder appends to b.
type encoder struct{ b []byte }

func newEncoder() *encoder { return &encoder{b: []byte{wireVersion}} }

func (e *encoder) int(n int64)     { e.b = msgp.AppendInt64(e.b, n) }
func (e *encoder) uint(n uint64)   { e.b = msgp.AppendUint64(e.b, n) }
func (e *encoder) bool(v bool)     { e.b = msgp.AppendBool(e.b, v) }
func (e *encoder) text(s string)   { e.b = msgp.AppendString(e.b, s) }
func (e *encoder) bytes(v []byte)  { e.b = msgp.AppendBytes(e.b, v) }
func (e *encoder) list(n int)      { e.b = msgp.AppendArrayHeader(e.b, uint32(n)) }
func (e *encoder) float(f float64) { e.b = msgp.AppendFloat64(e.b, f) }

// value writes a kind and what it takes.
func (e *encoder) value(v view.Value) {
	e.b = append(e.b, byte(v.Kind()))
	e.b = view.AppendValue(e.b, v)
}

func (e *encoder) values(vs []view.Value) {
	e.list(len(vs))
	for _, v := range vs {
		e.value(v)
	}
}

// decoder reads from b and remembers the first error.
type decoder struct {
	b   []byte
	err error
}

func newDecoder(b []byte) *decoder {
	if len(b) == 0 || b[0] != wireVersion {
		return &decoder{err: errVersion}
	}
	return &decoder{b: b[1:]}
}

func take[T any](d *decoder, f func([]byte) (T, []byte, error)) T {
	var v T
	if d.err == nil {
		v, d.b, d.err = f(d.b)
	}
	return v
}

func (d *decoder) int() int64     { return take(d, msgp.ReadInt64Bytes) }
func (d *decoder) uint() uint64   { return take(d, msgp.ReadUint64Bytes) }
func (d *decoder) bool() bool     { return take(d, msgp.ReadBoolBytes) }
func (d *decoder) text() string   { return take(d, msgp.ReadStringBytes) }
func (d *decoder) float() float64 { return take(d, msgp.ReadFloat64Bytes) }
func (d *decoder) bytes() []byte {
	v := take(d, msgp.ReadBytesZC)
	if len(v) == 0 {
		return nil
	}
	return append([]byte(nil), v...)
}

// list reads a length; an element takes a byte at least, so that no message
// asks for more memory than it has bytes.
func (d *decoder) list() int {
	n := take(d, msgp.ReadArrayHeaderBytes)
	if d.err == nil && int64(n) > int64(len(d.b)) {
		d.err = errForm
	}
	if d.err != nil {
		return 0
	}
	return int(n)
}

func (d *decoder) value() view.Value {
	if d.err == nil && len(d.b) == 0 {
		d.err = errForm
	}
	if d.err != nil {
		return view.Null
	}
	kind := view.Kind(d.b[0])
	d.b = d.b[1:]
	if kind == view.NullKind {
		d.b, d.err = msgp.ReadNilBytes(d.b)
		return view.Null
	}
	var v view.Value
	v, d.b, d.err = view.ReadValue(d.b, kind)
	return v
}

func (d *decoder) values() []view.Value {
	n := d.list()
	if n == 0 {
		return nil
	}
	vs := make([]view.Value, 0, min(n, firstRoom))
	for range n {
		if vs = append(vs, d.value()); d.err != nil {
			return nil
		}
	}
	return vs
}

// end is the decoder's error, or that of bytes left over.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) > 0 {
		d.err = errForm
	}
	if d.err != nil {
		return fmt.Errorf("read message: %w", d.err)
	}
	return nil
}

// ---- requests

func encodeRequests(requests []*read.Request) []byte {
	e := newEncoder()
	e.list(len(requests))
	for _, r := range requests {
		e.request(r)
	}
	return e.b
}

func (e *encoder) request(r *read.Request) {
	e.text(r.Store)
	e.int(int64(r.Op))
	e.int(int64(r.Partition))
	e.list(len(r.Keys))
	for _, k := range r.Keys {
		e.values(k)
	}
	e.values(r.Prefix)
	e.bool(r.HasText)
	e.text(r.Text)
	t := r.Time
	e.bool(t.HasFrom)
	e.bool(t.HasTo)
	e.int(t.From)
	e.int(t.To)
	e.int(t.Step)
	e.text(t.Zone)
	e.int(int64(t.Fill))
	e.bool(r.Merge)
	e.int(int64(r.First))
	e.bytes(r.After)
	e.bool(r.Reverse)
	e.text(r.Ranking)
}

func decodeRequests(b []byte) ([]*read.Request, error) {
	d := newDecoder(b)
	var requests []*read.Request
	keys := 0
	for range d.list() {
		r := d.request()
		requests = append(requests, r)
		keys += len(r.Keys)
		if d.err == nil && (len(requests) > maxRequests || keys > maxKeys) {
			d.err = errForm
		}
		if d.err != nil {
			break
		}
	}
	return requests, d.end()
}

func (d *decoder) request() *read.Request {
	r := &read.Request{}
	r.Store = d.text()
	r.Op = read.Op(d.small(int64(read.Size)))
	r.Partition = int32(d.small(math.MaxInt32))
	for range d.list() {
		if r.Keys = append(r.Keys, d.values()); d.err != nil || len(r.Keys) > maxKeys {
			return r
		}
	}
	r.Prefix = d.values()
	r.HasText = d.bool()
	r.Text = d.text()
	r.Time.HasFrom = d.bool()
	r.Time.HasTo = d.bool()
	r.Time.From = d.int()
	r.Time.To = d.int()
	r.Time.Step = d.int()
	r.Time.Zone = d.text()
	r.Time.Fill = view.Fill(d.small(int64(view.FillPrevious)))
	r.Merge = d.bool()
	r.First = int(d.small(math.MaxInt32))
	r.After = d.bytes()
	r.Reverse = d.bool()
	r.Ranking = d.text()
	return r
}

// small reads a number from 0 to most.
func (d *decoder) small(most int64) int64 {
	n := d.int()
	if d.err == nil && (n < 0 || n > most) {
		d.err = errForm
	}
	return n
}

// ---- answers

func encodeAnswers(answers []*read.Answer) []byte {
	e := newEncoder()
	e.list(len(answers))
	for _, a := range answers {
		e.part(&a.Part)
		e.error(a.Err)
		e.rows(a.Rows)
		e.list(len(a.Series))
		for _, s := range a.Series {
			e.rows(s)
		}
		e.int(a.Count)
		e.bool(a.More)
	}
	return e.b
}

func (e *encoder) rows(rows []*read.Row) {
	e.list(len(rows))
	for _, r := range rows {
		e.bool(r != nil)
		if r != nil {
			e.bytes(r.Key)
			e.int(int64(r.Partition))
			e.values(r.Values)
		}
	}
}

func (e *encoder) part(p *read.Part) {
	e.int(int64(p.Partition))
	e.text(p.Instance)
	e.int(int64(p.Role))
	e.bytes(p.Incarnation[:])
	e.uint(p.Seq)
	e.int(p.Lag)
	e.int(p.AsOf)
	e.int(p.Stream)
}

func (e *encoder) error(err *read.Error) {
	e.bool(err != nil)
	if err == nil {
		return
	}
	e.int(int64(err.Code))
	e.text(err.Message)
	e.int(int64(err.RetryAfter))
	e.bool(err.Progress != nil)
	if p := err.Progress; p != nil {
		e.int(p.Done)
		e.int(p.Total)
		e.float(p.Rate)
		e.int(int64(p.ETA))
	}
}

func decodeAnswers(b []byte) ([]*read.Answer, error) {
	d := newDecoder(b)
	var answers []*read.Answer
	for range d.list() {
		a := &read.Answer{Part: d.part()}
		a.Err = d.error()
		a.Part.Err = a.Err
		a.Rows = d.rows()
		for range d.list() {
			if a.Series = append(a.Series, d.rows()); d.err != nil {
				break
			}
		}
		a.Count = d.int()
		a.More = d.bool()
		if answers = append(answers, a); d.err != nil {
			break
		}
	}
	return answers, d.end()
}

func (d *decoder) rows() []*read.Row {
	n := d.list()
	if n == 0 {
		return nil
	}
	rows := make([]*read.Row, 0, min(n, firstRoom))
	for range n {
		var r *read.Row
		if d.bool() {
			r = &read.Row{Key: d.bytes(), Partition: int32(d.small(math.MaxInt32)), Values: d.values()}
		}
		if rows = append(rows, r); d.err != nil {
			return nil
		}
	}
	return rows
}

func (d *decoder) part() (p read.Part) {
	p.Partition = int32(d.small(math.MaxInt32))
	p.Instance = d.text()
	p.Role = read.Role(d.small(int64(read.Global)))
	copy(p.Incarnation[:], d.bytes())
	p.Seq = d.uint()
	p.Lag = d.int()
	p.AsOf = d.int()
	p.Stream = d.int()
	return p
}

func (d *decoder) error() *read.Error {
	if !d.bool() {
		return nil
	}
	err := &read.Error{
		Code:       read.Code(d.small(math.MaxUint8)),
		Message:    d.text(),
		RetryAfter: time.Duration(d.int()),
	}
	if d.bool() {
		err.Progress = &read.Progress{Done: d.int(), Total: d.int(), Rate: d.float(), ETA: time.Duration(d.int())}
	}
	return err
}

// ---- watches

func encodeCommand(c read.WatchCommand) []byte {
	e := newEncoder()
	e.bool(c.Add != nil)
	if c.Add == nil {
		e.uint(c.Remove)
		return e.b
	}
	e.uint(c.Add.ID)
	e.text(c.Add.Store)
	e.int(int64(c.Add.Partition))
	e.list(len(c.Add.Keys))
	for _, k := range c.Add.Keys {
		e.bytes(k)
	}
	e.bytes(c.Add.Prefix)
	return e.b
}

func decodeCommand(b []byte) (read.WatchCommand, error) {
	d := newDecoder(b)
	if !d.bool() {
		c := read.WatchCommand{Remove: d.uint()}
		return c, d.end()
	}
	in := &read.Interest{ID: d.uint(), Store: d.text(), Partition: int32(d.small(math.MaxInt32))}
	for range d.list() {
		if in.Keys = append(in.Keys, d.bytes()); d.err != nil {
			break
		}
	}
	in.Prefix = d.bytes()
	return read.WatchCommand{Add: in}, d.end()
}

func encodeEvent(ev read.Event) []byte {
	e := newEncoder()
	e.int(int64(ev.Kind))
	e.uint(ev.ID)
	e.uint(ev.Seq)
	e.int(ev.Stream)
	return e.b
}

func decodeEvent(b []byte) (read.Event, error) {
	d := newDecoder(b)
	ev := read.Event{Kind: read.EventKind(d.small(int64(read.Beat))), ID: d.uint(), Seq: d.uint(), Stream: d.int()}
	return ev, d.end()
}
