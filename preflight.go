package streamgauge

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/schema"
)

// preflightTime bounds what is asked of Kafka before anything runs.
const preflightTime = 45 * time.Second

// preflight sees to it that Kafka is there, takes this instance's credentials and
// lets it do what it is going to do, so that a mistake is named at start with
// what to do, and not met in the middle of a query.
func (in *instance) preflight(ctx context.Context, t *schema.Topology) error {
	ctx, cancel := context.WithTimeout(ctx, preflightTime)
	defer cancel()
	if err := in.client.Ping(ctx); err != nil {
		return err
	}
	err := in.client.CheckAccess(ctx, needs(in.cfg.App, t))
	var missing *broker.AccessError
	if errors.As(err, &missing) {
		return missing
	}
	if err != nil { // it is no authority on anything else
		in.log.Debug("access not checked", "err", err)
	}
	return nil
}

// needs are what an application does to topics, its group and its transactions.
func needs(app string, t *schema.Topology) broker.Needs {
	n := broker.Needs{Topics: make(map[string][]broker.Operation), Group: app}
	for _, s := range t.Sources {
		n.Topics[s.Topic] = []broker.Operation{broker.OpRead}
	}
	for _, table := range t.Tables {
		n.Topics[table.Topic] = []broker.Operation{broker.OpRead, broker.OpDescribeConfigs}
	}
	for _, name := range processor.InternalTopics(app, t) {
		switch {
		case strings.HasSuffix(name, "-changelog"):
			n.Topics[name] = []broker.Operation{broker.OpRead, broker.OpWrite, broker.OpDescribeConfigs}
		case strings.HasSuffix(name, "-repartition"):
			n.Topics[name] = []broker.Operation{broker.OpRead, broker.OpWrite, broker.OpDelete, broker.OpDescribeConfigs}
		default:
			n.Topics[name] = []broker.Operation{broker.OpWrite, broker.OpDescribeConfigs}
		}
	}
	for _, s := range t.Subtopologies {
		n.Transactionals = append(n.Transactionals, app+"-"+s.Name+"_0")
	}
	return n
}
