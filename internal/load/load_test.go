package load

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/internal/embedded"
	"github.com/streamgauge/streamgauge/processor/broker"
)

func TestCheckTopic(t *testing.T) {
	for _, name := range []string{"a", "a.b_c-D9", "...", strings.Repeat("x", 249)} {
		if err := CheckTopic(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "a b", "ä", "a/b", "a\n", strings.Repeat("x", 250)} {
		if err := CheckTopic(name); err == nil || !strings.Contains(err.Error(), "is no name of a topic") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestKeyOf(t *testing.T) {
	for _, c := range []struct{ line, want, mistake string }{
		{`{"k":"a\u00e9"}`, "aé", ""},
		{`{"k":"\ud83d\ude00"}`, "😀", ""},
		{`{"k":"\\ud800"}`, `\ud800`, ""},
		{`{"k":"\ufffd"}`, "\ufffd", ""},
		{`{"k":12.0}`, "12.0", ""},
		{`{"k":"\ud800"}`, "", `field "k" is not valid Unicode`},
		{`{"k":"\ud83dx"}`, "", `field "k" is not valid Unicode`},
		{`{"k":"\ud83d\u0041"}`, "", `field "k" is not valid Unicode`},
		{"{\"k\":\"\xff\"}", "", `field "k" is not valid Unicode`},
		{`{"k":null}`, "", `no field "k" for the key`},
		{`{"k":[1]}`, "", `field "k" is no text or number`},
	} {
		got, err := KeyOf([]byte(c.line), "k")
		if c.mistake != "" {
			if err == nil || err.Error() != c.mistake {
				t.Errorf("%s: got %v, want %s", c.line, err, c.mistake)
			}
		} else if err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v", c.line, got, err)
		}
	}
}

// A record leaves without a full batch and without Flush.
func TestWriterLingers(t *testing.T) {
	b, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	client, err := broker.New(broker.Config{Brokers: b.Addrs(), ClientID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ctx, stop := context.WithCancel(t.Context())
	if err := client.CreateTopics(ctx, []broker.TopicSpec{{Name: "slow", Partitions: 2, Replication: 1}}); err != nil {
		t.Fatal(err)
	}
	p := client.NewProducer(broker.ProducerConfig{})
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ran })
	w := NewWriter(p, "slow", 2)
	for i := range 4 {
		if err := w.Write(ctx, Record{Partition: -1, Value: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(10 * time.Second); i%2 == 1 && w.Written() < int64(i+1); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d records are written", w.Written(), i+1)
			}
		}
	}
	if err := w.Flush(ctx); err != nil || w.Written() != 4 {
		t.Errorf("%d written, %v", w.Written(), err)
	}
	stop()
	<-ran
	ran <- nil
	if err := w.Write(ctx, Record{Value: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(ctx); err == nil {
		t.Error("a stopped producer took a record")
	}
}
