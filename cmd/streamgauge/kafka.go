package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/streamgauge/streamgauge/internal/embedded"
	"github.com/streamgauge/streamgauge/internal/load"
	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/urfave/cli/v3"
)

const defaultBroker = "127.0.0.1:9092"

func brokerCommand() *cli.Command {
	return &cli.Command{
		Name:        "broker",
		Usage:       "run the embedded broker by itself, on a fixed port",
		Description: "It speaks Kafka's protocol, for trying things out; it is one node without replication.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Value: defaultBroker, Usage: "`HOST:PORT` on loopback"},
			&cli.StringFlag{Name: "dir", Usage: "keep its data in `DIR`; without it, in memory"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			b, err := embedded.Start(embedded.Options{Dir: c.String("dir"), Listen: c.String("listen")})
			if err != nil {
				return err
			}
			defer b.Close()
			fmt.Fprintf(c.Root().Writer, "broker listens on %s; Ctrl-C ends it\n", strings.Join(b.Addrs(), ", "))
			<-ctx.Done()
			return nil
		},
	}
}

func loadCommand() *cli.Command {
	return &cli.Command{
		Name:      "load",
		Usage:     "write JSON lines into a topic",
		ArgsUsage: "[FILE]",
		Description: "Reads FILE, or standard input, a JSON object a line; each becomes the value of a record.\n" +
			"The topic is created if it is not there.",
		Flags: []cli.Flag{
			brokersFlag(), configFlag(),
			&cli.StringFlag{Name: "topic", Required: true, Usage: "write into `TOPIC`"},
			&cli.StringFlag{Name: "key", Usage: "take the Kafka key from `FIELD`; without it records have none and are dealt in turn"},
			&cli.IntFlag{Name: "partitions", Value: 6, Usage: "partitions of a topic that is created"},
			&cli.BoolFlag{Name: "compact", Usage: "create the topic compacted, for a table"},
		},
		Action: loadLines,
	}
}

func loadLines(ctx context.Context, c *cli.Command) error {
	path, err := oneArg(c, "-")
	if err != nil {
		return err
	}
	if err := load.CheckTopic(c.String("topic")); err != nil {
		return fmt.Errorf("--topic: %w", err)
	}
	if n := c.Int("partitions"); n < 1 || n > 100_000 {
		return fmt.Errorf("--partitions %d: allowed are 1 to 100000", n)
	}
	in := io.Reader(os.Stdin)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	client, err := connect(ctx, c)
	if err != nil {
		return err
	}
	defer client.Close()
	partitions, err := ensureTopic(ctx, c, client)
	if err != nil {
		return err
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	p := client.NewProducer(broker.ProducerConfig{})
	ran := make(chan error, 1)
	go func() { ran <- p.Run(inner) }()
	w := load.NewWriter(p, c.String("topic"), partitions)
	progress := newProgress(c.Root().ErrWriter)
	err = load.Lines(in, func(n int, line []byte) error {
		r := load.Record{Partition: -1, Value: append([]byte(nil), line...)}
		if field := c.String("key"); field != "" {
			var err error
			if r.Key, err = load.KeyOf(line, field); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		progress.tick(int64(n))
		return w.Write(inner, r)
	})
	err = errors.Join(err, w.Flush(inner))
	stop()
	err = errors.Join(err, <-ran)
	progress.done()
	fmt.Fprintf(c.Root().Writer, "wrote %d records into %s (%d partitions)\n", w.Written(), c.String("topic"), partitions)
	return err
}

func ensureTopic(ctx context.Context, c *cli.Command, client *broker.Client) (int32, error) {
	name := c.String("topic")
	spec := broker.TopicSpec{Name: name, Partitions: int32(c.Int("partitions")), Replication: -1}
	if c.Bool("compact") {
		spec.Configs = map[string]string{"cleanup.policy": "compact"}
	}
	if err := client.CreateTopics(ctx, []broker.TopicSpec{spec}); err != nil {
		return 0, err
	}
	cluster, err := client.Metadata(ctx, name)
	if err != nil {
		return 0, err
	}
	t := cluster.Topics[name]
	if t.Err != nil {
		return 0, fmt.Errorf("topic %s: %w", name, t.Err)
	}
	return int32(len(t.Partitions)), nil
}

// progress tells on a terminal's line how far a load is, twice a second.
type progress struct {
	w     io.Writer
	began time.Time
	last  time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, began: time.Now(), last: time.Now()} }

func (p *progress) tick(n int64) {
	if time.Since(p.last) < 500*time.Millisecond {
		return
	}
	p.last = time.Now()
	fmt.Fprintf(p.w, "\r%d lines read, %.0f a second", n, float64(n)/time.Since(p.began).Seconds())
}

func (p *progress) done() {
	if p.last.Sub(p.began) > 500*time.Millisecond {
		fmt.Fprintln(p.w)
	}
}

func resetCommand() *cli.Command {
	return &cli.Command{
		Name:  "reset",
		Usage: "delete an application's internal topics, its group and its local state",
		Description: "Stop every instance first. It says what it will delete and asks, unless --yes is given.\n" +
			"The source topics stay; the next start processes them from the beginning.",
		Flags: []cli.Flag{
			brokersFlag(), configFlag(),
			&cli.StringFlag{Name: "app", Required: true, Usage: "the application's `NAME`"},
			&cli.StringFlag{Name: "schema", Value: "schema.graphqls", Usage: "the application's schema, which tells its topics"},
			&cli.StringFlag{Name: "state", Usage: "also delete the application's folder in the state directory `DIR`"},
			&cli.BoolFlag{Name: "leave", Usage: "leave topics that look like the application's and that its schema does not make"},
			&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
		},
		Action: reset,
	}
}

func reset(ctx context.Context, c *cli.Command) error {
	app := c.String("app")
	if err := checkApp(app); err != nil {
		return err
	}
	s, err := schemaAt(c.String("schema"))
	if err != nil {
		return err
	}
	client, err := connect(ctx, c)
	if err != nil {
		return err
	}
	defer client.Close()
	r, err := remainsOf(ctx, client, app, s.Topology)
	if err != nil {
		return err
	}
	if dir := c.String("state"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, app)); err == nil {
			r.folder = filepath.Join(dir, app)
		}
	}
	if !c.Bool("leave") {
		if err := leftOut(ctx, client, app, processor.InternalTopics(app, s.Topology), c.String("schema")); err != nil {
			return err
		}
	}
	out := c.Root().Writer
	if r.empty() {
		fmt.Fprintf(out, "there is nothing of %s to delete\n", app)
		return nil
	}
	r.list(out)
	if !c.Bool("yes") {
		fmt.Fprint(out, "Delete all of this? Type yes: ")
		answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		if strings.TrimSpace(answer) != "yes" {
			return errors.New("nothing was deleted")
		}
	}
	if err := r.remove(ctx, client); err != nil {
		return err
	}
	fmt.Fprintln(out, "deleted")
	return nil
}

// remains are what there is of an application besides its sources.
type remains struct {
	group, folder string // "": none
	topics        []string
}

// remainsOf asks Kafka. An application that runs is an error.
func remainsOf(ctx context.Context, client *broker.Client, app string, t *schema.Topology) (remains, error) {
	var r remains
	g, err := client.DescribeGroup(ctx, app)
	switch {
	case errors.Is(err, broker.ErrGroupNotFound):
	case err != nil:
		return r, err
	case len(g.Members) > 0:
		return r, fmt.Errorf("group %s has %d members: stop every instance of %s first", app, len(g.Members), app)
	case g.State != "Dead": // which older brokers call one that is not there
		r.group = app
	}
	r.topics, err = existing(ctx, client, processor.InternalTopics(app, t))
	return r, err
}

func (r remains) empty() bool { return r.group == "" && r.folder == "" && len(r.topics) == 0 }

func (r remains) list(out io.Writer) {
	if r.group != "" {
		fmt.Fprintf(out, "group    %s with its offsets\n", r.group)
	}
	for _, t := range r.topics {
		fmt.Fprintf(out, "topic    %s\n", t)
	}
	if r.folder != "" {
		fmt.Fprintf(out, "folder   %s\n", r.folder)
	}
}

func (r remains) remove(ctx context.Context, client *broker.Client) error {
	if len(r.topics) > 0 {
		if err := client.DeleteTopics(ctx, r.topics...); err != nil {
			return err
		}
	}
	if r.group != "" {
		if err := client.DeleteGroup(ctx, r.group); err != nil && !errors.Is(err, broker.ErrGroupNotFound) {
			return err
		}
	}
	if r.folder == "" {
		return nil
	}
	return os.RemoveAll(r.folder)
}

// existing are those of the topics that are there.
func existing(ctx context.Context, client *broker.Client, names []string) ([]string, error) {
	cluster, err := client.Metadata(ctx, names...)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range names {
		if cluster.Topics[name].Err == nil {
			found = append(found, name)
		}
	}
	return found, nil
}

// leftOut refuses when topics look like the application's and its schema does
// not name them: it is then another application's schema, and deleting half
// would leave a state that no instance starts on.
func leftOut(ctx context.Context, client *broker.Client, app string, known []string, file string) error {
	cluster, err := client.Metadata(ctx)
	if err != nil {
		return err
	}
	for name := range cluster.Topics {
		own := strings.HasPrefix(name, app+"-") && (strings.HasSuffix(name, "-changelog") || strings.HasSuffix(name, "-repartition"))
		if own && !slices.Contains(known, name) {
			return fmt.Errorf("topic %s looks like one of %s, and %s does not make it: name the application's schema with --schema, or, when the topic is another's, leave it with --leave", name, app, file)
		}
	}
	return nil
}
