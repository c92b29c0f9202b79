package gateway

import (
	"bytes"
	"slices"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// merge makes one result of the pieces' answers. A partition that did not
// answer is an error where it held a key asked for (an empty answer means
// empty); elsewhere it is listed as missing, unless all are.
func (p *plan) merge() (*read.Result, error) {
	r := &read.Result{Parts: p.parts()}
	var failed *read.Error
	answered := 0
	for _, pc := range p.pieces {
		if pc.answer.Err == nil {
			answered++
		} else if failed == nil || pc.answer.Err.Code == read.Internal {
			failed = pc.answer.Err
		}
	}
	switch {
	case failed == nil:
	case p.keyed() || !partialFor(p.pieces):
		return nil, failed
	case p.demand != nil && p.demand.complete:
		return nil, incomplete(r.Parts)
	case answered == 0:
		return nil, failed
	}
	switch p.query.Op {
	case read.Get:
		r.Rows = make([]*read.Row, len(p.query.Keys))
		p.place(func(at, from int, a *read.Answer) { r.Rows[at] = a.Rows[from] })
	case read.Fetch:
		r.Series = make([][]*read.Row, len(p.query.Keys))
		p.place(func(at, from int, a *read.Answer) { r.Series[at] = a.Series[from] })
	case read.Range:
		p.mergePage(r)
	case read.Top:
		p.mergeTop(r)
	case read.Size:
		for _, pc := range p.pieces {
			r.Count += pc.answer.Count
		}
	}
	return r, nil
}

// parts tell where each partition's share came from, by partition.
func (p *plan) parts() []read.Part {
	parts := make([]read.Part, len(p.pieces))
	for i, pc := range p.pieces {
		parts[i] = pc.answer.Part
	}
	slices.SortFunc(parts, func(a, b read.Part) int { return int(a.Partition - b.Partition) })
	return parts
}

// keyed says whether the query asks for keys: an answer without one of their
// partitions would be a wrong one.
func (p *plan) keyed() bool { return p.query.Op == read.Get || p.query.Op == read.Fetch }

// incomplete is the error of a query that wants all partitions.
func incomplete(parts []read.Part) *read.Error {
	missing := read.MissingPartitions(read.FreshnessOf(parts).Missing)
	e := &read.Error{Code: read.Incomplete, Message: missing.Error(), Cause: missing, RetryAfter: retrySoon}
	for i := range parts {
		if err := parts[i].Err; err != nil {
			e.RetryAfter = max(e.RetryAfter, err.RetryAfter)
		}
	}
	return e
}

// empty is the answer to a query none of whose partitions answered, each saying
// why; nil to a query of keys, which has no such answer.
func (p *plan) empty() *read.Result {
	if p.keyed() || !partialFor(p.pieces) || p.demand != nil && p.demand.complete {
		return nil
	}
	return &read.Result{Parts: p.parts()}
}

// partialFor says whether every failure is of a kind that leaves a partial
// answer useful: of a question that is itself at fault it would not be.
func partialFor(pieces []*piece) bool {
	for _, pc := range pieces {
		if e := pc.answer.Err; e != nil {
			switch e.Code {
			case read.BadInput, read.TooLarge, read.UnknownStore, read.Forbidden, read.Internal:
				return false
			}
		}
	}
	return true
}

func (p *plan) place(put func(at, from int, a *read.Answer)) {
	for _, pc := range p.pieces {
		for from, at := range pc.places {
			put(at, from, pc.answer)
		}
	}
}

// mergePage merges the partitions' pages, each sorted, in key order.
func (p *plan) mergePage(r *read.Result) {
	less := func(a, b *read.Row) int { return bytes.Compare(a.Key, b.Key) }
	if p.query.Reverse {
		less = func(a, b *read.Row) int { return bytes.Compare(b.Key, a.Key) }
	}
	r.Rows, r.More = p.mergeSorted(less)
}

// mergeTop merges the partitions' best rows, ties by key.
func (p *plan) mergeTop(r *read.Result) {
	by := 0
	for _, k := range p.view.Rankings {
		if k.Name(p.view) == p.query.Ranking {
			by = k.By
		}
	}
	r.Rows, _ = p.mergeSorted(func(a, b *read.Row) int {
		if c := view.Compare(b.Values[by], a.Values[by]); c != 0 {
			return c
		}
		return bytes.Compare(a.Key, b.Key)
	})
}

// mergeSorted takes the first rows of sorted lists; more says that rows, here
// or at an instance, follow them.
func (p *plan) mergeSorted(compare func(a, b *read.Row) int) (rows []*read.Row, more bool) {
	lists := make([][]*read.Row, 0, len(p.pieces))
	for _, pc := range p.pieces {
		if pc.answer.Err == nil && len(pc.answer.Rows) > 0 {
			lists = append(lists, pc.answer.Rows)
		}
		more = more || pc.answer.More
	}
	for len(rows) < p.query.First && len(lists) > 0 {
		best := 0
		for i := 1; i < len(lists); i++ {
			if compare(lists[i][0], lists[best][0]) < 0 {
				best = i
			}
		}
		rows = append(rows, lists[best][0])
		if lists[best] = lists[best][1:]; len(lists[best]) == 0 {
			lists = slices.Delete(lists, best, best+1)
		}
	}
	return rows, more || len(lists) > 0
}
