package processor

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/streamgauge/streamgauge/processor/broker"
)

// restore reads the rest of the changelogs, and checks that file, changelogs and
// committed offset agree.
func (l *life) restore(ctx context.Context, offset broker.Committed, inputStart int64) error {
	if err := l.catchUp(ctx); err != nil {
		return err
	}
	rec, err := l.agree(offset)
	if err != nil {
		return err
	}
	if rec == nil {
		return l.fresh(offset, inputStart)
	}
	return l.adopt(rec, offset)
}

// agree compares the ends of the changelogs with each other and with the
// committed offset. nil, nil: everything is empty, a first start.
func (l *life) agree(offset broker.Committed) (*commitRecord, error) {
	hint := l.w.cfg.resetHint()
	some := slices.ContainsFunc(l.recs, func(c *commitRecord) bool { return c != nil })
	if !some {
		switch {
		case slices.Contains(l.rows, true):
			return nil, refuse(hint, "changelog of task %s has rows and no commit record", l.id)
		case offset.Offset > 0:
			return nil, refuse(hint, "the group's offset of %s is %d, and the changelogs of the task are empty: its state is gone", l.input, offset.Offset)
		}
		return nil, nil
	}
	newest := slices.MaxFunc(l.recs, func(a, b *commitRecord) int { return cmp.Compare(a.seq(), b.seq()) })
	for i, rec := range l.recs {
		if rec == nil && !l.rows[i] && !newest.knows(l.sub.Feeds[i].View.Store) {
			// A store that the schema did not have: its columns are said to be new.
			continue
		}
		if rec.seq() != newest.Seq {
			return nil, refuse(hint, "the changelogs of task %s disagree: %s ends at seq %d, another at %d",
				l.id, l.changelog[i].Topic, rec.seq(), newest.Seq)
		}
	}
	return newest, nil
}

// fresh is the first start of a task.
func (l *life) fresh(offset broker.Committed, inputStart int64) error {
	if offset.Offset < 0 {
		l.setPosition(inputStart)
	}
	l.rec.Columns = columnsOf(l.sub.Feeds)
	l.rec.InputID = l.w.layout.topics[l.input.Topic].ID
	if l.sub.Repartition != nil {
		l.rec.SourceID = l.sourceID()
		l.rec.Upstream = make([]upstream, l.w.layout.partitions[l.sub.Name])
		for i := range l.rec.Upstream {
			l.rec.Upstream[i].Event = noTime
		}
	}
	return l.serve()
}

// sourceID is the id of the topic upstream of a repartition.
func (l *life) sourceID() [16]byte {
	return l.w.layout.topics[l.sub.Repartition.Source.Topic].ID
}

// adopt goes on from a commit record. It wins over a committed offset that is
// behind: they are written by one transaction, of which a broker that lost
// power may have kept the changelog's part alone.
func (l *life) adopt(rec *commitRecord, offset broker.Committed) error {
	hint := l.w.cfg.resetHint()
	if offset.Offset > rec.Position {
		return refuse(hint, "the group's offset of %s is %d, ahead of the changelogs' %d: committed state is missing", l.input, offset.Offset, rec.Position)
	}
	if offset.Offset >= 0 && offset.Offset < rec.Position {
		l.log.Warn("the commit record is ahead of the group's offset, and wins", "record", rec.Position, "offset", offset.Offset)
	}
	if id := l.w.layout.topics[l.input.Topic].ID; rec.InputID != id {
		return refuse(hint, "input %s was created anew: its offsets mean other records", l.input.Topic)
	}
	if l.sub.Repartition != nil && rec.SourceID != l.sourceID() {
		return refuse(hint, "source topic %s was created anew: its offsets mean other records", l.sub.Repartition.Source.Topic)
	}
	if n := l.w.layout.partitions[l.sub.Name]; l.sub.Repartition != nil && len(rec.Upstream) != int(n) {
		return refuse(hint, "task %s was written with %d source partitions, and there are %d", l.id, len(rec.Upstream), n)
	}
	if err := l.compatible(rec.Columns); err != nil {
		return err
	}
	l.rec = rec.clone()
	l.rec.Columns = columnsOf(l.sub.Feeds)
	l.setPosition(rec.Position)
	return l.serve()
}

// compatible compares the columns that the state was written with to the
// schema's. Leaving one out is free; a new or a changed one would answer from
// part of its records.
func (c *taskCopy) compatible(old map[string]string) error {
	var added, changed []string
	for name, fp := range columnsOf(c.sub.Feeds) {
		switch was, ok := old[name]; {
		case !ok:
			added = append(added, name)
		case was != fp:
			changed = append(changed, name)
		}
	}
	var reasons []string
	for _, is := range []struct {
		what  string
		names []string
	}{{"new", added}, {"changed", changed}} {
		if len(is.names) > 0 {
			slices.Sort(is.names)
			reasons = append(reasons, is.what+" in the schema: "+joinNames(is.names))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return refuseStart(c.w.cfg.resetHint(), "the state of task %s was written by another schema, and its rows would not be whole (%s)",
		c.id, strings.Join(reasons, "; "))
}

// serve publishes the restored state and answers reads from now on.
func (l *life) serve() error {
	if l.sub.Repartition == nil {
		l.rec.Lag = max(0, l.end-l.position)
	}
	rec := l.rec.clone()
	l.show(nil, &rec)
	l.event = l.rec.Stream
	return nil
}
