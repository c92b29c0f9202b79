package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/streamgauge/streamgauge/internal/chaos/oracle"
)

const (
	// promised is how long an answer may take.
	promised = 5 * time.Second
	// patience is how long a client waits, so that what comes late is seen.
	patience = promised + 500*time.Millisecond
	// demandedAge is the maxAge that some reads ask for.
	demandedAge = 30 * time.Second
)

// client is one reader. It goes from instance to instance, as behind a load
// balancer that knows which are ready; those that probe stay with one.
type client struct {
	run   *run
	name  string
	rng   *rand.Rand
	http  *http.Client
	q     *questions
	probe bool // asks for the probe keys alone
	turn  int  // of the probe keys
	home  int  // the instance that a probing client asks
	bold  bool // asks instances that are paused, too: a zombie that wakes is asked at once
	// With keeps, it demands what it has seen before, by token.
	keeps bool
	seen  map[string]int64
	known tokens
}

func (r *run) newClient(i int) *client {
	rng := rand.New(rand.NewPCG(r.cfg.Seed, 100+uint64(i)))
	return &client{
		run: r, name: fmt.Sprintf("client %d", i), rng: rng,
		http:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 10 * time.Second}},
		q:     &questions{ledger: r.ledger, airports: r.feed.airports, real: r.real, keys: r.cfg.Keys, rng: rng},
		probe: i%4 == 0, turn: i, home: i / 4, bold: i%4 == 1, keeps: i%2 == 0 || r.directive == (directive{}),
		seen: map[string]int64{}, known: tokens{},
	}
}

// loop asks until ctx ends, a moment between two.
func (c *client) loop(ctx context.Context) {
	defer c.http.CloseIdleConnections()
	for ctx.Err() == nil {
		q := c.question()
		if in := c.pick(); in != nil {
			c.ask(ctx, in, q)
		}
		think := 20 + c.rng.IntN(100)
		if c.probe {
			think = 20
		}
		pause(ctx, time.Duration(think)*time.Millisecond)
	}
}

func (c *client) question() question {
	if !c.probe {
		return c.q.next()
	}
	// In turn, so that the time between two answers for a key says something.
	q := c.q.lookup(generated(c.turn % hot))
	c.turn++
	q.probe = true
	return q
}

// pick is an instance that may be asked; nil: there is none at the moment.
func (c *client) pick() *instance {
	list := c.run.cluster.list
	if c.probe {
		// Each has its instance, so that one that hangs holds up its own alone.
		in := list[c.home%len(list)]
		if cond, _, _ := in.now(); cond == up {
			return in
		}
		return nil
	}
	first := c.rng.IntN(len(list))
	for i := range list {
		in := list[(first+i)%len(list)]
		if cond, _, _ := in.now(); cond == up || cond == paused && c.bold {
			return in
		}
	}
	return nil
}

// asked is one request, for its trail.
type asked struct {
	client  string
	in      *instance
	q       *question
	request string
	sent    time.Time
	took    time.Duration
	answer  answer
}

func (c *client) ask(ctx context.Context, in *instance, q question) {
	want := demand{kind: "query"}
	if c.keeps {
		want.token = c.known.text()
	} else if c.rng.IntN(4) == 0 {
		want.maxAge = demandedAge
	}
	query, vars := c.run.directive.operation(q.selection, want)
	request := body(query, vars)
	cond, isolated, epoch := in.now()
	within := patience
	if cond == paused {
		within = 25 * time.Second
	}
	at := &asked{client: c.name, in: in, q: &q, request: string(request), sent: time.Now()}
	at.answer = post(ctx, c.http, in.http, request, within)
	at.took = time.Since(at.sent)
	if ctx.Err() != nil {
		return
	}
	_, isolatedNow, epochNow := in.now()
	counts := cond == up && epoch == epochNow && !isolated && !isolatedNow
	if at.answer.err != nil {
		c.refused(at, want, counts)
		return
	}
	c.judge(at, want, counts)
}

// refused counts what is no good answer.
func (c *client) refused(at *asked, want demand, counts bool) {
	r := c.run
	switch {
	case !counts:
		r.report.add(&r.report.unready)
	case at.answer.code == "STALE" && r.mayBeOld(want):
		r.report.add(&r.report.stale)
	default:
		r.violation(at, oracle.Fault{Kind: oracle.Failed, Text: fmt.Sprintf("%s after %s", at.answer.err, at.took.Round(time.Millisecond))})
	}
}

// mayBeOld says whether a copy that is fresh enough may be nowhere: more was
// demanded than the settings promise, or no broker was to be reached.
func (r *run) mayBeOld(want demand) bool { return want.maxAge > 0 || r.brokersAway.Load() }

// judge follows a good answer.
func (c *client) judge(at *asked, want demand, counts bool) {
	r := c.run
	if counts {
		r.report.answer(at.took)
		if at.q.probe {
			r.report.probe(at.q.key, time.Now())
		}
		if at.took > promised {
			r.violation(at, oracle.Fault{Kind: oracle.Failed, Text: fmt.Sprintf("the answer took %s", at.took.Round(time.Millisecond))})
		}
	}
	faults, err := at.q.check(&at.answer)
	if err != nil {
		faults = append(faults, oracle.Fault{Kind: oracle.Wrong, Text: err.Error()})
	}
	for path, f := range at.answer.views {
		if f.Partial && counts && !(f.outdated() && r.mayBeOld(want)) {
			faults = append(faults, oracle.Fault{Kind: oracle.Failed, Text: path + " lacks partitions"})
		}
		if want.maxAge > 0 && f.asOf() < at.sent.Add(-want.maxAge-r.cfg.Slack).UnixMilli() {
			faults = append(faults, oracle.Fault{Kind: oracle.FalseFreshness, Text: fmt.Sprintf("%s is as of %v, demanded was not older than %s", path, f.AsOf, want.maxAge)})
		}
	}
	faults = append(faults, c.follow(at, want)...)
	for _, f := range faults {
		r.violation(at, f)
	}
}

// follow checks that what the client has seen stays seen, and remembers more.
func (c *client) follow(at *asked, want demand) []oracle.Fault {
	if !c.keeps {
		return nil
	}
	var faults []oracle.Fault
	for path, f := range at.answer.views {
		behind, err := "", error(nil)
		if want.token != "" && c.run.directive.atLeast != "" {
			behind, err = c.known.behind(f.Token)
		}
		if err = errors.Join(err, c.known.take(f.Token)); err != nil {
			faults = append(faults, oracle.Fault{Kind: oracle.Wrong, Text: fmt.Sprintf("the token of %s: %s", path, err)})
		} else if behind != "" {
			faults = append(faults, oracle.Fault{Kind: oracle.Backwards, Text: path + ": " + behind})
		}
	}
	if at.q.counts == nil {
		return faults
	}
	for key, n := range at.q.counts(&at.answer) {
		if n < c.seen[key] {
			faults = append(faults, oracle.Fault{Kind: oracle.Backwards, Text: fmt.Sprintf("%s had %d flights and has %d", key, c.seen[key], n)})
		}
		c.seen[key] = max(c.seen[key], n)
	}
	return faults
}
