package chaos

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/streamgauge/streamgauge/internal/proxy"
)

const (
	// stopBound is how long a graceful stop may take.
	stopBound = 20 * time.Second
	// wholeBound is how long the cluster may take to be whole again before the
	// next fault comes all the same.
	wholeBound = 60 * time.Second
)

// chaos breaks and heals, one fault after the other, until ctx ends.
func (r *run) chaos(ctx context.Context, p *Plan) {
	for ctx.Err() == nil {
		s, ok := p.Next()
		if !ok {
			return
		}
		r.fault(ctx, s)
		took, why := r.whole(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case why != "":
			r.trail.event("not whole after %s: %s", took.Round(time.Millisecond), why)
			r.picture(ctx)
		default:
			r.trail.event("whole again after %s", took.Round(time.Millisecond))
		}
		pause(ctx, s.Rest)
	}
}

// whole waits until instances and brokers are as they should be.
func (r *run) whole(ctx context.Context) (took time.Duration, why string) {
	began := time.Now()
	for {
		if r.admin != nil {
			why = r.admin.whole(ctx, r.cfg.Brokers)
		}
		if why == "" {
			_, why = r.cluster.whole(ctx, wholeBound-time.Since(began))
			return time.Since(began), why
		}
		if time.Since(began) > wholeBound || ctx.Err() != nil {
			return time.Since(began), why
		}
		pause(ctx, 300*time.Millisecond)
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// fault does one, whole: what it broke is mended when it returns, though ctx may
// have ended meanwhile.
func (r *run) fault(ctx context.Context, s Step) {
	r.trail.event("%s", s)
	end := r.begin(s.String())
	defer end()
	err := error(nil)
	switch s.Kind {
	case Kill, Wipe, Pause, Roll:
		err = r.hitInstance(ctx, s)
	case KillBroker, StopBroker:
		err = r.hitBroker(ctx, s)
	case Leaders, Coordinators:
		of := data
		if s.Kind == Coordinators {
			of = coordinating
		}
		n := 0
		n, err = r.admin.moveLeaders(ctx, r.rng, of)
		r.trail.event("%d partitions have other leaders", n)
	default:
		r.hitNetwork(ctx, s)
	}
	if err != nil {
		r.trail.event("%s: %v", s.Kind, err)
	}
}

func (r *run) hitInstance(ctx context.Context, s Step) error {
	in := r.cluster.list[s.Slot]
	switch s.Kind {
	case Pause:
		in.signal(syscall.SIGSTOP, paused)
		pause(ctx, s.For)
		in.signal(syscall.SIGCONT, up)
		return nil
	case Roll:
		return r.roll(ctx)
	}
	in.kill()
	r.report.add(&r.report.kills)
	if s.Kind == Wipe {
		if err := os.RemoveAll(in.state); err != nil {
			return fmt.Errorf("lose the state of %s: %w", in.name, err)
		}
	}
	pause(ctx, s.For)
	return in.start()
}

// roll restarts each instance when the one before is whole again.
func (r *run) roll(ctx context.Context) error {
	for _, in := range r.cluster.list {
		took, err := in.stop(stopBound)
		if err != nil {
			r.complain(in, err.Error())
		} else {
			r.trail.event("%s stopped within %s", in.name, took.Round(time.Millisecond))
		}
		if err := in.start(); err != nil {
			return err
		}
		if _, why := r.cluster.whole(ctx, wholeBound); why != "" && ctx.Err() == nil {
			r.trail.event("not whole after the restart of %s: %s", in.name, why)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

func (r *run) hitBroker(ctx context.Context, s Step) error {
	r.brokersAway.Store(r.cfg.Brokers == 1)
	defer r.brokersAway.Store(false)
	// Whatever ends meanwhile, the broker comes back.
	always := context.WithoutCancel(ctx)
	hit := r.brokers.stop
	if s.Kind == KillBroker {
		hit = r.brokers.kill
		r.report.add(&r.report.kills)
	}
	if err := hit(always, s.Broker); err != nil {
		return err
	}
	pause(ctx, s.For)
	began := time.Now()
	if err := r.brokers.start(always, s.Broker); err != nil {
		return err
	}
	r.trail.event("broker %d is back after %s", s.Broker, time.Since(began).Round(time.Millisecond))
	return nil
}

func (r *run) hitNetwork(ctx context.Context, s Step) {
	cut := proxy.Fault{Kind: proxy.Cut}
	in := r.cluster.list[s.Slot]
	switch s.Kind {
	case CutPeer:
		r.network.between(s.Slot, s.Other, cut)
	case Isolate:
		in.isolate(true)
		defer in.isolate(false)
		r.network.around(s.Slot, cut)
	case ResetPeers:
		in.isolate(true)
		defer in.isolate(false)
		r.network.around(s.Slot, proxy.Fault{Kind: proxy.Reset})
	case CutBroker:
		r.network.toBrokers(s.Slot, s.Broker, cut)
	case CutBrokers:
		r.network.toBrokers(s.Slot, 0, cut)
	case Slow:
		late := proxy.Fault{Kind: proxy.Delay, Delay: s.Delay}
		r.network.around(s.Slot, late)
		r.network.toBrokers(s.Slot, 0, late)
	}
	pause(ctx, s.For)
	r.network.heal()
}
