package processor

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tinylib/msgp/msgp"
)

// The first byte of a changelog key: rows have a tuple's tag, which is 0 or 1.
const commitKeyByte = 0x02

// commitKey is the reserved key of the commit record in every changelog.
var commitKey = []byte{commitKeyByte}

const commitVersion = 1

// noTime is a stream time or a mark that has not been: nothing is late yet.
const noTime = math.MinInt64

// commitRecord ends every transaction in every changelog of a task: what its
// rows stand for.
type commitRecord struct {
	Seq      uint64
	Owner    string // instance that committed it; "": one of a release that did not say
	Wall     int64  // ms
	Stream   int64  // stream time; noTime: none yet
	Position int64  // next offset of the task's input partition
	CaughtUp int64  // ms: everything known to be in the source was in; 0: never
	Lag      int64  // source records known and not yet in

	// Upstream by source partition; nil for a source task.
	Upstream []upstream
	// Columns fingerprints by "store.column", of the schema that wrote the rows.
	Columns map[string]string
	// InputID is the topic id of the input when the record was written; SourceID
	// that of the topic upstream, which the offsets in Upstream belong to.
	InputID  [16]byte
	SourceID [16]byte // zero for a source task
}

// upstream is what a repartition task knows of one source partition.
type upstream struct {
	Next     int64 // next offset and index that are not repeats
	Index    int64
	Event    int64 // greatest event time its marks told; noTime: none yet
	End      int64 // end offset known to its reader
	CaughtUp int64 // ms: its reader had everything below a known end
	Wall     int64 // ms: its newest mark was written
	Place    int64 // offset of that in the input
	Idle     bool  // at the end and nothing new for a while
}

// seq is the record's; 0, which none has, without a record.
func (r *commitRecord) seq() uint64 {
	if r == nil {
		return 0
	}
	return r.Seq
}

// knows says whether the schema that wrote the record had a store.
func (r *commitRecord) knows(store string) bool {
	for name := range r.Columns {
		if strings.HasPrefix(name, store+".") {
			return true
		}
	}
	return false
}

// columnsMark is a short mark of a schema's columns, by which members tell
// whether they would keep the same.
func columnsMark(columns map[string]string) string {
	h := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		fmt.Fprintf(h, "%s=%s\n", name, columns[name])
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// clone copies a record at work, so that it may be kept. Columns never change
// in place.
func (r *commitRecord) clone() commitRecord {
	c := *r
	c.Upstream = slices.Clone(r.Upstream)
	return c
}

func (r *commitRecord) encode() []byte {
	b := []byte{commitVersion}
	b = msgp.AppendMapHeader(b, 11)
	b = msgp.AppendUint64(msgp.AppendString(b, "seq"), r.Seq)
	b = msgp.AppendString(msgp.AppendString(b, "owner"), r.Owner)
	b = msgp.AppendInt64(msgp.AppendString(b, "wall"), r.Wall)
	b = msgp.AppendInt64(msgp.AppendString(b, "stream"), r.Stream)
	b = msgp.AppendInt64(msgp.AppendString(b, "position"), r.Position)
	b = msgp.AppendInt64(msgp.AppendString(b, "caughtUp"), r.CaughtUp)
	b = msgp.AppendInt64(msgp.AppendString(b, "lag"), r.Lag)
	b = msgp.AppendString(msgp.AppendString(b, "input"), hex.EncodeToString(r.InputID[:]))
	b = msgp.AppendString(msgp.AppendString(b, "source"), hex.EncodeToString(r.SourceID[:]))
	b = msgp.AppendString(b, "upstream")
	b = msgp.AppendArrayHeader(b, uint32(len(r.Upstream)))
	for _, u := range r.Upstream {
		b = msgp.AppendArrayHeader(b, 8)
		for _, n := range [...]int64{u.Next, u.Index, u.Event, u.End, u.CaughtUp, u.Wall} {
			b = msgp.AppendInt64(b, n)
		}
		b = msgp.AppendInt64(msgp.AppendBool(b, u.Idle), u.Place)
	}
	b = msgp.AppendString(b, "columns")
	b = msgp.AppendMapHeader(b, uint32(len(r.Columns)))
	for _, k := range slices.Sorted(maps.Keys(r.Columns)) {
		b = msgp.AppendString(msgp.AppendString(b, k), r.Columns[k])
	}
	return b
}

var errCommitVersion = errors.New("commit record of an unknown format version: written by a newer release")

func decodeCommit(b []byte) (*commitRecord, error) {
	if len(b) == 0 || b[0] != commitVersion {
		return nil, errCommitVersion
	}
	n, b, err := msgp.ReadMapHeaderBytes(b[1:])
	r := &commitRecord{Stream: noTime}
	for ; err == nil && n > 0; n-- {
		var name string
		if name, b, err = msgp.ReadStringBytes(b); err == nil {
			b, err = r.decodeField(name, b)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("commit record: %w", err)
	}
	return r, nil
}

func (r *commitRecord) decodeField(name string, b []byte) (_ []byte, err error) {
	switch name {
	case "seq":
		r.Seq, b, err = msgp.ReadUint64Bytes(b)
	case "owner":
		r.Owner, b, err = msgp.ReadStringBytes(b)
	case "wall":
		r.Wall, b, err = msgp.ReadInt64Bytes(b)
	case "stream":
		r.Stream, b, err = msgp.ReadInt64Bytes(b)
	case "position":
		r.Position, b, err = msgp.ReadInt64Bytes(b)
	case "caughtUp":
		r.CaughtUp, b, err = msgp.ReadInt64Bytes(b)
	case "lag":
		r.Lag, b, err = msgp.ReadInt64Bytes(b)
	case "input":
		b, err = decodeID(&r.InputID, b)
	case "source":
		b, err = decodeID(&r.SourceID, b)
	case "upstream":
		b, err = r.decodeUpstream(b)
	case "columns":
		b, err = r.decodeColumns(b)
	default:
		b, err = msgp.Skip(b)
	}
	return b, err
}

func decodeID(id *[16]byte, b []byte) ([]byte, error) {
	s, b, err := msgp.ReadStringBytes(b)
	if err != nil {
		return b, err
	}
	if len(s) != hex.EncodedLen(len(id)) {
		return b, errors.New("topic id of another form")
	}
	_, err = hex.Decode(id[:], []byte(s))
	return b, err
}

// maxUpstream bounds what a record may claim before memory is set aside.
const maxUpstream = 1 << 16

func (r *commitRecord) decodeUpstream(b []byte) ([]byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil || n > maxUpstream {
		return b, errors.Join(err, checkCount(n))
	}
	for ; n > 0; n-- {
		var u upstream
		var k uint32
		if k, b, err = msgp.ReadArrayHeaderBytes(b); err != nil || k < 7 || k > 8 {
			return b, errors.Join(err, errors.New("upstream of another form"))
		}
		for _, p := range [...]*int64{&u.Next, &u.Index, &u.Event, &u.End, &u.CaughtUp, &u.Wall} {
			if *p, b, err = msgp.ReadInt64Bytes(b); err != nil {
				return b, err
			}
		}
		if u.Idle, b, err = msgp.ReadBoolBytes(b); err != nil {
			return b, err
		}
		if k == 8 { // earlier releases did not say
			if u.Place, b, err = msgp.ReadInt64Bytes(b); err != nil {
				return b, err
			}
		}
		r.Upstream = append(r.Upstream, u)
	}
	return b, nil
}

func checkCount(n uint32) error {
	if n > maxUpstream {
		return fmt.Errorf("%d partitions are too many", n)
	}
	return nil
}

func (r *commitRecord) decodeColumns(b []byte) ([]byte, error) {
	n, b, err := msgp.ReadMapHeaderBytes(b)
	if err != nil {
		return b, err
	}
	r.Columns = make(map[string]string)
	for ; n > 0; n-- {
		var k, v string
		if k, b, err = msgp.ReadStringBytes(b); err != nil {
			return b, err
		}
		if v, b, err = msgp.ReadStringBytes(b); err != nil {
			return b, err
		}
		r.Columns[k] = v
	}
	return b, nil
}

// encodeCommits encodes what a store file ends at: the newest record of each
// changelog. They are one and the same but in the middle of a restore.
func encodeCommits(recs map[string]*commitRecord) []byte {
	b := []byte{commitVersion}
	b = msgp.AppendMapHeader(b, uint32(len(recs)))
	for _, topic := range slices.Sorted(maps.Keys(recs)) {
		b = msgp.AppendString(b, topic)
		if recs[topic] == nil {
			b = msgp.AppendNil(b)
			continue
		}
		b = msgp.AppendBytes(b, recs[topic].encode())
	}
	return b
}

// decodeCommits reads what encodeCommits wrote; nothing gives no records.
func decodeCommits(b []byte) (map[string]*commitRecord, error) {
	recs := make(map[string]*commitRecord)
	if len(b) == 0 {
		return recs, nil
	}
	if b[0] != commitVersion {
		return nil, errCommitVersion
	}
	n, b, err := msgp.ReadMapHeaderBytes(b[1:])
	for ; err == nil && n > 0; n-- {
		var topic string
		if topic, b, err = msgp.ReadStringBytes(b); err != nil {
			break
		}
		if msgp.IsNil(b) {
			b, err = msgp.ReadNilBytes(b)
			continue
		}
		var enc []byte
		if enc, b, err = msgp.ReadBytesZC(b); err == nil {
			recs[topic], err = decodeCommit(enc)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("commit records: %w", err)
	}
	return recs, nil
}
