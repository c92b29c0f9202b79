package streamgauge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/read/rpc"
)

// reachTries are the attempts to reach oneself at start, each within reachTime.
const (
	reachTries = 3
	reachTime  = 2 * time.Second
)

// warnOfAddresses says at start what others will not get along with.
func (in *instance) warnOfAddresses() {
	host, _, _ := net.SplitHostPort(in.advertised())
	ip, err := netip.ParseAddr(host)
	unspecified := err == nil && ip.IsUnspecified()
	loopback := strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
	if !in.cfg.Kafka.Local() && (unspecified || loopback) {
		in.log.Warn("instances on other machines cannot reach this one at the address that it tells them; set listen.advertise to one that they can", "addr", in.advertised())
	}
	if bound, err := netip.ParseAddrPort(in.rpc.Addr().String()); in.identity == nil && err == nil && !bound.Addr().Unmap().IsLoopback() {
		in.log.Warn("instances speak to each other in plain text and without authentication; set listen.tls, or keep the port on a network of their own", "addr", in.rpc.Addr().String())
	}
}

// otherError says that somebody else answers at this instance's address.
type otherError struct {
	addr string
	who  rpc.Greeting
}

func (e *otherError) Error() string {
	return fmt.Sprintf("at %s, which this instance tells the others, another process answers (instance %s): give each instance an address of its own (listen.advertise)", e.addr, e.who.Instance)
}

// reach calls this instance where others are told to. An *otherError says that
// it is somebody else's address.
func (in *instance) reach(ctx context.Context) error {
	client, err := in.dial(read.Peer{Addr: in.advertised()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	who, err := client.Hello(ctx)
	if closing := client.Close(); closing != nil {
		in.log.Debug("connection not closed cleanly", "err", closing)
	}
	if err == nil && who != in.greeting {
		return &otherError{addr: in.advertised(), who: who}
	}
	return err
}

// watchAddress sees to it that this instance is where it says: once at start,
// and again when the routes show another instance at the same address.
func (in *instance) watchAddress(ctx context.Context) error {
	if err := in.reachAtStart(ctx); err != nil {
		return err
	}
	for told := ""; ; {
		routes, newer := in.worker.Routes()
		other := sharing(routes, in.cfg.Instance, in.advertised())
		if other != told && other != "" {
			in.log.Error("two instances have one address: whoever asks the one may get the other; give each an address of its own (listen.advertise)", "addr", in.advertised(), "other", other)
			if err := in.reach(ctx); errors.As(err, new(*otherError)) {
				return err
			}
		}
		told = other
		select {
		case <-ctx.Done():
			return nil
		case <-newer:
		}
	}
}

func (in *instance) reachAtStart(ctx context.Context) error {
	var err error
	for range reachTries {
		if err = in.reach(ctx); err == nil || ctx.Err() != nil {
			return nil
		}
		if errors.As(err, new(*otherError)) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reachTime / 4):
		}
	}
	in.log.Error("this instance does not reach itself at the address that it tells the others, who will not either; set listen.advertise to an address of this machine that they reach", "addr", in.advertised(), "err", err)
	return nil
}

// sharing is another instance with the address; "" when there is none.
func sharing(routes *read.Routes, self, addr string) string {
	for _, id := range slices.Sorted(maps.Keys(routes.Instances)) {
		if id != self && routes.Instances[id].Addr == addr {
			return id
		}
	}
	return ""
}
