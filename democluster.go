package streamgauge

import (
	"context"

	"github.com/streamgauge/streamgauge/processor"
)

// demoCluster stops and starts the instances of a demo.
type demoCluster struct {
	*demo
	ctx     context.Context // of the session
	brokers []string
}

func (c *demoCluster) instances(self string) []instanceInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]instanceInfo, 0, c.n)
	for i := range c.n {
		name := instanceName(i)
		info := instanceInfo{
			ID: name, HTTP: c.addr(i), Reason: "stopped",
			Tasks: []processor.TaskStatus{}, Tables: []processor.TableStatus{},
		}
		if r := c.running[name]; r != nil {
			info = r.info()
		}
		info.Self = name == self
		list = append(list, info)
	}
	return list
}

func (c *demoCluster) index(id string) int {
	for i := range c.n {
		if instanceName(i) == id {
			return i
		}
	}
	return -1
}

func (c *demoCluster) stopInstance(id string) error {
	if c.index(id) < 0 {
		return errNoInstance
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.running[id]
	if r == nil || r.ctx.Err() != nil {
		return nil
	}
	left := 0
	for _, other := range c.running {
		if other.ctx.Err() == nil {
			left++
		}
	}
	if left == 1 {
		return errLastInstance
	}
	r.stop()
	return nil
}

func (c *demoCluster) startInstance(id string) error {
	i := c.index(id)
	if i < 0 {
		return errNoInstance
	}
	c.mu.Lock()
	r := c.running[id]
	c.mu.Unlock()
	if r != nil && r.ctx.Err() == nil {
		return nil
	}
	if r != nil { // it is stopping: its port and folder come free first
		select {
		case <-r.done:
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
	return c.launch(c.ctx, i, c.brokers)
}
