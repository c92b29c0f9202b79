package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// cluster is all instances.
type cluster struct {
	list []*instance
	http *http.Client
}

func newCluster(list []*instance) *cluster {
	return &cluster{list: list, http: &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}}
}

// watch notes which instances have become ready, until ctx ends.
func (c *cluster) watch(ctx context.Context) {
	for ctx.Err() == nil {
		for _, in := range c.list {
			if cond, _, _ := in.now(); cond == starting && c.unready(ctx, in) == "" {
				in.ready()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// unready is why an instance is not ready; "": it is.
func (c *cluster) unready(ctx context.Context, in *instance) string {
	status, body, err := c.get(ctx, in, "/readyz")
	switch {
	case err != nil:
		return in.name + ": " + err.Error()
	case status != http.StatusOK:
		return in.name + ": " + strings.TrimSpace(string(body))
	}
	return ""
}

// recent is how old a copy may be that counts as up to date.
const recent = 10 * time.Second

// task is what an instance says of one of its tasks.
type task struct {
	Task   string   `json:"task"`
	Stores []string `json:"stores"`
	State  string   `json:"state"`
	Role   string   `json:"role"`
	Lag    int64    `json:"lag"`
	AsOf   int64    `json:"asOf"`
}

// tasks are an instance's own.
func (c *cluster) tasks(ctx context.Context, in *instance) ([]task, error) {
	_, body, err := c.get(ctx, in, "/api/instances")
	if err != nil {
		return nil, err
	}
	var r struct {
		Instances []struct {
			Self  bool   `json:"self"`
			Tasks []task `json:"tasks"`
		} `json:"instances"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("what %s says of its tasks: %w", in.name, err)
	}
	for _, i := range r.Instances {
		if i.Self {
			return i.Tasks, nil
		}
	}
	return nil, fmt.Errorf("%s says nothing of its tasks", in.name)
}

// unwhole is what keeps the cluster from being whole; "": every instance is
// ready and, where there are standbys at all, each task with a store has two
// copies that were up to date a moment ago.
func (c *cluster) unwhole(ctx context.Context) string {
	copies, spare := map[string]int{}, false
	now := time.Now().UnixMilli()
	for _, in := range c.list {
		if why := c.unready(ctx, in); why != "" {
			return why
		}
		tasks, err := c.tasks(ctx, in)
		if err != nil {
			return err.Error()
		}
		for _, t := range tasks {
			if len(t.Stores) == 0 {
				continue
			}
			copies[t.Task] += 0
			spare = spare || t.Role != "active"
			if now-t.AsOf < recent.Milliseconds() {
				copies[t.Task]++
			}
		}
	}
	for name, n := range copies {
		if n == 0 || spare && n < 2 {
			return fmt.Sprintf("task %s has %d copies that are up to date", name, n)
		}
	}
	return ""
}

// whole waits for a whole cluster and says how long it took, and what kept it
// when that was too long.
func (c *cluster) whole(ctx context.Context, within time.Duration) (took time.Duration, why string) {
	began := time.Now()
	for {
		if why = c.unwhole(ctx); why == "" || time.Since(began) > within || ctx.Err() != nil {
			return time.Since(began), why
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (c *cluster) get(ctx context.Context, in *instance, path string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+in.http+path, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, b, err
}
