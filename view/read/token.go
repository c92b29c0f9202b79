package read

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// Freshness is how an answer stands: of the least fresh of its parts.
type Freshness struct {
	AsOf    int64 // ms; 0: unknown
	Lag     int64 // source records, summed
	Standby bool
	Reset   bool      // the demanded token was of another incarnation
	Missing []Missing // partitions that did not answer
	Token   string
}

// Missing is a partition that is not in the answer, and why.
type Missing struct {
	Partition int32
	Reason    string
}

// MissingPartitions is the cause of an Incomplete error: each partition that did
// not answer.
type MissingPartitions []Missing

// Error lists the partitions, those with the same reason together.
func (m MissingPartitions) Error() string {
	var reasons []string
	partitions := make(map[string][]string)
	for _, x := range m {
		if partitions[x.Reason] == nil {
			reasons = append(reasons, x.Reason)
		}
		partitions[x.Reason] = append(partitions[x.Reason], fmt.Sprint(x.Partition))
	}
	for i, r := range reasons {
		noun := "partition "
		if len(partitions[r]) > 1 {
			noun = "partitions "
		}
		reasons[i] = noun + strings.Join(partitions[r], ", ") + " (" + r + ")"
	}
	return strings.Join(reasons, "; ")
}

// Partial says whether partitions are missing.
func (f *Freshness) Partial() bool { return len(f.Missing) > 0 }

// FreshnessOf sums up parts. Of a part that did not answer, what is left of an
// earlier answer counts: its position always, its age when its rows are shown.
func FreshnessOf(parts []Part) Freshness {
	var f Freshness
	first := true
	for i := range parts {
		p := &parts[i]
		f.Reset = f.Reset || p.Reset
		if p.Err != nil {
			f.Missing = append(f.Missing, Missing{Partition: p.Partition, Reason: p.Err.Reason()})
			if p.AsOf == 0 {
				continue
			}
		}
		if first || p.AsOf < f.AsOf {
			f.AsOf = p.AsOf
		}
		first = false
		f.Lag += p.Lag
		f.Standby = f.Standby || p.Role.Flagged()
	}
	f.Token = EncodeToken(parts)
	return f
}

const tokenVersion = 1

// Position is where one partition of an incarnation of a store stood.
type Position struct {
	Incarnation [16]byte // see Incarnation
	Partition   int32
	Seq         uint64
}

// Mark is what the incarnations of a store begin with.
type Mark [4]byte

// MarkOf is a store's mark.
func MarkOf(store string) Mark {
	h := fnv.New32a()
	h.Write([]byte(store))
	return Mark(h.Sum(nil))
}

// Incarnation is a store's as tokens have it: the topic id of its changelog, its
// first bytes replaced by the store's mark. So a token tells which of its
// positions are a store's even when the changelog has become another, and two
// stores kept in one topic are told apart. What is left of the id, which is
// random (KIP-516), is unique enough.
func Incarnation(m Mark, topic [16]byte) [16]byte {
	copy(topic[:], m[:])
	return topic
}

// Of says whether the position is one of the store with this mark.
func (p *Position) Of(m Mark) bool { return Mark(p.Incarnation[:len(m)]) == m }

// Flagged says whether the role is that of a copy beside the active one, whose
// answers are flagged.
func (r Role) Flagged() bool { return r != Active && r != Global }

// PositionsOf are where parts stood, those that have a position.
func PositionsOf(parts []Part) []Position {
	ps := make([]Position, 0, len(parts))
	for i := range parts {
		if p := &parts[i]; p.Err == nil || p.Incarnation != [16]byte{} {
			ps = append(ps, Position{p.Incarnation, p.Partition, p.Seq})
		}
	}
	return ps
}

// EncodeToken makes the opaque token of an answer: for each partition its
// incarnation and seq. A part that did not answer keeps the position it has, so
// that a token never goes back.
func EncodeToken(parts []Part) string { return EncodePositions(PositionsOf(parts)) }

// EncodePositions makes the token of positions, the newest of each partition. It
// sorts them.
func EncodePositions(ps []Position) string {
	slices.SortFunc(ps, func(a, b Position) int {
		return cmp.Or(slices.Compare(a.Incarnation[:], b.Incarnation[:]), cmp.Compare(a.Partition, b.Partition), cmp.Compare(b.Seq, a.Seq))
	})
	ps = slices.CompactFunc(ps, func(a, b Position) bool { return a.Incarnation == b.Incarnation && a.Partition == b.Partition })
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

type demandKey struct{}

// WithDemand hands the demand of an operation to those who resolve its fields.
func WithDemand(ctx context.Context, d *Demand) context.Context {
	return context.WithValue(ctx, demandKey{}, d)
}

// DemandOf is the operation's demand; nil when it has none.
func DemandOf(ctx context.Context) *Demand {
	d, _ := ctx.Value(demandKey{}).(*Demand)
	return d
}

// ErrToken is a text that is no token.
var ErrToken = errors.New("not a freshness token")

// maxToken bounds a token in characters: some thousand partitions.
const maxToken = 32 << 10

// DecodeToken reads a token.
func DecodeToken(s string) ([]Position, error) {
	if len(s) > maxToken {
		return nil, ErrToken
	}
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
