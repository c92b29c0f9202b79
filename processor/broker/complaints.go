package broker

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// complainEvery is the least time between complaints of one kind.
const complainEvery = 10 * time.Second

// complaints keeps what goes on going wrong, as while brokers are away, from
// filling the log: each kind is told at Warn once in a while, and at Debug
// meanwhile. The zero value is ready; safe for concurrent use.
type complaints struct {
	mu   sync.Mutex // guards told
	told map[string]time.Time
}

// warn logs a message, which is one of few constants.
func (c *complaints) warn(log *slog.Logger, message string, fields ...any) {
	now := time.Now()
	level := slog.LevelWarn
	c.mu.Lock()
	if last, ok := c.told[message]; ok && now.Sub(last) < complainEvery {
		level = slog.LevelDebug
	} else {
		if c.told == nil {
			c.told = make(map[string]time.Time)
		}
		c.told[message] = now
	}
	c.mu.Unlock()
	log.Log(context.Background(), level, message, fields...)
}
