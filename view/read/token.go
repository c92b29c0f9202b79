package read

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
)

// Freshness is how an answer stands: of the least fresh of its parts.
type Freshness struct {
	AsOf    int64 // ms; 0: unknown
	Lag     int64 // source records, summed
	Standby bool
	Missing []Missing // partitions that did not answer
	Token   string
}

// Missing is a partition that is not in the answer, and why.
type Missing struct {
	Partition int32
	Reason    string
}

// Partial says whether partitions are missing.
func (f *Freshness) Partial() bool { return len(f.Missing) > 0 }

// FreshnessOf sums up parts.
func FreshnessOf(parts []Part) Freshness {
	var f Freshness
	first := true
	for i := range parts {
		p := &parts[i]
		if p.Err != nil {
			f.Missing = append(f.Missing, Missing{Partition: p.Partition, Reason: p.Err.Reason()})
			continue
		}
		if first || p.AsOf < f.AsOf {
			f.AsOf = p.AsOf
		}
		first = false
		f.Lag += p.Lag
		f.Standby = f.Standby || (p.Role != Active && p.Role != Global)
	}
	f.Token = EncodeToken(parts)
	return f
}

const tokenVersion = 1

// Position is where one partition of an incarnation stood.
type Position struct {
	Incarnation [16]byte
	Partition   int32
	Seq         uint64
}

// EncodeToken makes the opaque token of an answer: for each partition its
// incarnation and seq.
func EncodeToken(parts []Part) string {
	ps := make([]Position, 0, len(parts))
	for i := range parts {
		if p := &parts[i]; p.Err == nil {
			ps = append(ps, Position{p.Incarnation, p.Partition, p.Seq})
		}
	}
	slices.SortFunc(ps, func(a, b Position) int {
		if c := slices.Compare(a.Incarnation[:], b.Incarnation[:]); c != 0 {
			return c
		}
		return cmp.Compare(a.Partition, b.Partition)
	})
	b := []byte{tokenVersion}
	for i, p := range ps {
		if i == 0 || p.Incarnation != ps[i-1].Incarnation {
			n := 0
			for _, q := range ps[i:] {
				if q.Incarnation == p.Incarnation {
					n++
				}
			}
			b = append(b, p.Incarnation[:]...)
			b = binary.AppendUvarint(b, uint64(n))
		}
		b = binary.AppendUvarint(b, uint64(p.Partition))
		b = binary.AppendUvarint(b, p.Seq)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ErrToken is a text that is no token.
var ErrToken = errors.New("not a freshness token")

// DecodeToken reads a token.
func DecodeToken(s string) ([]Position, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) == 0 || b[0] != tokenVersion {
		return nil, ErrToken
	}
	var ps []Position
	for b = b[1:]; len(b) > 0; {
		var p Position
		if len(b) < len(p.Incarnation) {
			return nil, ErrToken
		}
		copy(p.Incarnation[:], b)
		n, b2, ok := uvarint(b[len(p.Incarnation):])
		if !ok || n == 0 || n > uint64(len(b2)) {
			return nil, ErrToken
		}
		for b = b2; n > 0; n-- {
			var part uint64
			if part, b, ok = uvarint(b); !ok || part > 1<<31-1 {
				return nil, ErrToken
			}
			p.Partition = int32(part)
			if p.Seq, b, ok = uvarint(b); !ok {
				return nil, ErrToken
			}
			ps = append(ps, p)
		}
	}
	return ps, nil
}

func uvarint(b []byte) (uint64, []byte, bool) {
	n, k := binary.Uvarint(b)
	if k <= 0 {
		return 0, nil, false
	}
	return n, b[k:], true
}
