package server

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// rates are token buckets by client; the longest unseen are forgotten.
type rates struct {
	perSecond rate.Limit
	burst     int
	buckets   *lru.Cache[string, *rate.Limiter] // nil: no limit
}

func newRates(perSecond float64, burst, clients int) (*rates, error) {
	if perSecond < 0 || burst < 0 {
		return &rates{}, nil
	}
	b, err := lru.New[string, *rate.Limiter](max(clients, 1))
	if err != nil {
		return nil, err
	}
	return &rates{perSecond: rate.Limit(perSecond), burst: burst, buckets: b}, nil
}

// take takes one request from the client's bucket, or says how long to wait.
func (r *rates) take(client string, now time.Time) (wait time.Duration, ok bool) {
	if r.buckets == nil {
		return 0, true
	}
	b, found := r.buckets.Get(client)
	if !found {
		b = rate.NewLimiter(r.perSecond, r.burst)
		if other, found, _ := r.buckets.PeekOrAdd(client, b); found {
			b = other
		}
	}
	if b.AllowN(now, 1) {
		return 0, true
	}
	reservation := b.ReserveN(now, 1)
	defer reservation.CancelAt(now)
	if !reservation.OK() {
		return time.Second, false
	}
	return reservation.DelayFrom(now), false
}
