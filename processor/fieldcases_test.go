package processor

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// Cases in which neighbouring systems went wrong in the field.

func TestFC01WindowsBefore1970(t *testing.T) {
	_, in := one(t, `
type Tick @source(topic: "ticks", time: "at") { k: String! at: DateTime! }
type PerMinute @view(from: "Tick", by: "k") @window(size: "1m", retain: "36500d") {
  k: String! start: DateTime! @windowStart end: DateTime! @windowEnd n: Long! @count }
type Query { perMinute(k: String!, from: DateTime, to: DateTime): [PerMinute!] @windows }`, "ticks", 1, lines(1,
		`{"k":"m","at":"1969-12-31T23:59:59Z"}`, `{"k":"m","at":"1969-12-31T23:59:00Z"}`, `{"k":"m","at":"1970-01-01T00:00:00Z"}`)...)
	in.becomes(t, windows("per-minute", view.OfString("m"), "1969-12-31T23:00:00Z", "1970-01-01T01:00:00Z", 0, "", view.FillNone), "start end n",
		"start=1969-12-31T23:59:00Z end=1970-01-01T00:00:00Z n=2; start=1970-01-01T00:00:00Z end=1970-01-01T00:01:00Z n=1")
}

const levelSchema = `
type Level @source(topic: "levels", time: "at") { river: String! at: DateTime! q: Long! }
type Hourly @view(from: "Level", by: "river") @window(size: "1h", retain: "3650d") {
  river: String! start: DateTime! @windowStart end: DateTime! @windowEnd n: Long! @count q: Long! @sum }
type Query { hourly(river: String!, from: DateTime, to: DateTime, step: Duration, zone: String, fill: Fill): [Hourly!] @windows }`

const aDay = 86_400_000

func TestFC02CalendarDaysAcrossClockChanges(t *testing.T) {
	_, in := one(t, levelSchema, "levels", 1, lines(1,
		`{"river":"aare","at":"2017-10-20T12:00:00Z","q":1}`,
		`{"river":"rhine","at":"2017-03-25T22:30:00Z","q":1}`, `{"river":"rhine","at":"2017-03-25T23:30:00Z","q":2}`,
		`{"river":"rhine","at":"2017-03-26T21:30:00Z","q":4}`, `{"river":"rhine","at":"2017-03-26T22:30:00Z","q":8}`,
		`{"river":"rhine","at":"2017-03-27T22:30:00Z","q":16}`)...)
	zurich := func(river, from, to string) read.Query {
		return windows("hourly", view.OfString(river), from, to, aDay, "Europe/Zurich", view.FillEmpty)
	}
	in.becomes(t, zurich("rhine", "2017-03-25T00:00:00+01:00", "2017-03-28T00:00:00+02:00"), "start end n q",
		"start=2017-03-24T23:00:00Z end=2017-03-25T23:00:00Z n=1 q=1; "+
			"start=2017-03-25T23:00:00Z end=2017-03-26T22:00:00Z n=2 q=6; "+
			"start=2017-03-26T22:00:00Z end=2017-03-27T22:00:00Z n=1 q=8")
	in.becomes(t, zurich("aare", "2017-10-28T00:00:00+02:00", "2017-10-31T00:00:00+01:00"), "start n",
		"start=2017-10-27T22:00:00Z n=0; start=2017-10-28T22:00:00Z n=0; start=2017-10-29T23:00:00Z n=0")
	unknown := windows("hourly", view.OfString("aare"), "2017-10-28T00:00:00Z", "2017-10-31T00:00:00Z", aDay, "Europe/Zurych", view.FillEmpty)
	wantText(t, in.answer(t, unknown, "n"), "bad input", "Europe/Zurych")
}

func TestFC04ZoneHalfAnHourOff(t *testing.T) {
	records := lines(1,
		`{"river":"ganga","at":"2024-01-01T18:10:00Z","q":1}`, `{"river":"ganga","at":"2024-01-01T18:20:00Z","q":2}`,
		`{"river":"ganga","at":"2024-01-01T18:40:00Z","q":4}`, `{"river":"ganga","at":"2024-01-01T19:10:00Z","q":8}`)
	kolkata := windows("hourly", view.OfString("ganga"), "2024-01-01T00:00:00+05:30", "2024-01-03T00:00:00+05:30", aDay, "Asia/Kolkata", view.FillNone)
	t.Run("divides", func(t *testing.T) {
		_, in := one(t, strings.Replace(levelSchema, `"1h"`, `"30m"`, 1), "levels", 1, records...)
		in.becomes(t, kolkata, "start q", "start=2023-12-31T18:30:00Z q=3; start=2024-01-01T18:30:00Z q=12")
	})
	_, in := one(t, levelSchema, "levels", 1, records...)
	in.becomes(t, all("hourly"), "q", "q=7; q=8")
	wantText(t, in.answer(t, kolkata, "q"), "bad input", "a window of 1h does not divide the days of Asia/Kolkata")
}

const hitMinuteSchema = `
type Hit @source(topic: "hits", key: "page", time: "at") { page: String! at: DateTime! v: Long! }
type HitMinute @view(from: "Hit", by: "page") @window(size: "1m", grace: "10s", retain: "1d") {
  page: String! start: DateTime! @windowStart final: Boolean! @windowFinal n: Long! @count s: Long! @sum(of: "v") }
type Query { minutes(page: String!, from: DateTime, to: DateTime): [HitMinute!] @windows }`

var hitMinutes = []string{
	`{"page":"x","at":"2024-01-01T10:00:30.000Z","v":1}`, `{"page":"x","at":"2024-01-01T10:01:09.999Z","v":2}`,
	`{"page":"x","at":"2024-01-01T10:00:59.999Z","v":4}`, `{"page":"x","at":"2024-01-01T10:01:10.000Z","v":8}`,
	`{"page":"x","at":"2024-01-01T10:00:00.000Z","v":16}`, `{"page":"x","at":"2024-01-01T10:01:00.000Z","v":32}`,
}

func TestFC05LastMomentOfGrace(t *testing.T) {
	var records []message
	for _, v := range hitMinutes {
		records = append(records, keyed("x", v))
	}
	c, in := one(t, hitMinuteSchema, "hits", 1, records[:3]...)
	in.becomes(t, all("hit-minute"), "n s final", "n=2 s=5 final=false; n=1 s=2 final=false")
	c.produce("hits", records[3:]...)
	in.becomes(t, all("hit-minute"), "n s final", "n=2 s=5 final=true; n=3 s=42 final=false")
	if n := count(t, in.metrics.late.WithLabelValues("hit-minute")); n != 1 {
		t.Errorf("%v records late, want 1", n)
	}
}

// No row is dropped as late because another partition is ahead (invariant 9).
func TestFC05FastNeighbour(t *testing.T) {
	c, in := one(t, strings.Replace(hitMinuteSchema, `key: "page", `, "", 1), "hits", 2, lines(1, hitMinutes...)...)
	until(t, "x is counted", func() bool { return strings.Contains(in.answer(t, all("hit-minute"), "page n"), "page=x") })
	until(t, "marks of p0 have come", func() bool {
		for _, s := range in.Status().Tasks {
			if s.Seq > 2 && s.HeldBy != nil && *s.HeldBy == 1 {
				return true
			}
		}
		return false
	})
	c.produce("hits", message{partition: 1, value: []byte(`{"page":"y","at":"2024-01-01T10:00:10Z","v":64}`)})
	until(t, "y has its 64", func() bool { return strings.Contains(in.answer(t, all("hit-minute"), "page s"), "page=y s=64") })
}

func TestFC07SecondsMicrosecondsAndTheFuture(t *testing.T) {
	soon, far := time.Now().Add(59*time.Minute).UnixMilli(), time.Now().Add(61*time.Minute).UnixMilli()
	event := func(ts any) message { return keyed("a", fmt.Sprintf(`{"id":"a","ts":%v}`, ts)) }
	c, in := one(t, `
type Ev @source(topic: "ev", key: "id", time: "ts") { id: String! ts: DateTime! }
type EvMinute @view(from: "Ev", by: "id") @window(size: "1m", grace: "10s", retain: "36500d") { id: String! start: DateTime! @windowStart n: Long! @count }
type Query { evMinute(id: String!, from: DateTime, to: DateTime): [EvMinute!] @windows }`, "ev", 1,
		event(1517873969000000), event(1517873969000), event(1517873969), event(1517873970000),
		event(`"2018-02-05T23:39:31Z"`), event("null"), event(`"1517873971000"`))
	in.becomes(t, all("ev-minute"), "start n", "start=2018-02-05T23:39:00Z n=4")
	letters := c.letters(2)
	wantText(t, strings.Join(letters, "\n"), "ev/0 Ev: ", "outside the years", "ev/5 Ev: ")
	if n := count(t, in.metrics.late.WithLabelValues("ev-minute")); n != 1 {
		t.Errorf("%v records late, want the one of seconds", n)
	}
	c.produce("ev", event(far), event(soon))
	until(t, "59 minutes ahead moves time", func() bool { s := in.Status().Tasks[0].Stream; return s != nil && *s == soon })
	wantText(t, strings.Join(c.letters(3), "\n"), "ev/7 Ev: event time", "more than 1h0m0s ahead of the clock")
}

func TestFC09FirstAndLastByEventTime(t *testing.T) {
	_, in := one(t, `
type Trade @source(topic: "trades", time: "at") { sym: String! at: DateTime! p: Float }
type Day @view(from: "Trade", by: "sym") @window(size: "12h", grace: "13h", retain: "3650d") {
  sym: String! start: DateTime! @windowStart open: Float @first(of: "p") close: Float @last(of: "p") n: Long! @count priced: Long! @count(where: "p >= 0") }
type Query { days(sym: String!, from: DateTime, to: DateTime, step: Duration): [Day!] @windows }`, "trades", 1, lines(1,
		`{"sym":"ZZ","at":"2018-08-20T23:55:00Z","p":900}`, `{"sym":"ZZ","at":"2018-08-20T23:50:00Z","p":1000}`,
		`{"sym":"ZZ","at":"2018-08-20T23:58:00Z","p":null}`, `{"sym":"ZZ","at":"2018-08-20T23:55:00Z","p":901}`,
		`{"sym":"ZZ","at":"2018-08-20T23:50:00Z","p":1001}`, `{"sym":"ZZ","at":"2018-08-20T11:50:00Z","p":7}`)...)
	in.becomes(t, all("day"), "open close n priced", "open=7 close=7 n=1 priced=1; open=1000 close=901 n=5 priced=4")
	in.becomes(t, windows("day", view.OfString("ZZ"), "2018-08-20T00:00:00Z", "2018-08-21T00:00:00Z", aDay, "UTC", view.FillNone),
		"open close n priced", "open=7 close=901 n=6 priced=5")
}

func TestFC10IntegersBeyond53Bits(t *testing.T) {
	c, in := one(t, `
type Post @source(topic: "posts", time: "at") { acct: Long! at: DateTime! id: Long! }
type Acct @view(from: "Post", by: "acct") { acct: Long! n: Long! @count newer: Long! @count(where: "id > 1780921717355446272") top: Long @max(of: "id") total: Long! @sum(of: "id") }
type Query { acct(acct: Long!): Acct @lookup }`, "posts", 1, lines(1,
		`{"acct":9007199254740993,"at":"2024-01-01T00:00:00Z","id":1780921717355446273}`,
		`{"acct":9007199254740992,"at":"2024-01-01T00:00:01Z","id":1780921717355446272}`,
		`{"acct":1,"at":"2024-01-01T00:00:01Z","id":9223372036854775808}`, `{"acct":1,"at":"2024-01-01T00:00:01Z","id":1.5}`,
		`{"acct":1,"at":"2024-01-01T00:00:01Z","id":1.0}`, `{"acct":1,"at":"2024-01-01T00:00:01Z","id":1e3}`,
		`{"acct":1,"at":"2024-01-01T00:00:01Z","id":"9007199254740993"}`)...)
	in.becomes(t, all("acct"), "acct n newer top total",
		"acct=1 n=3 newer=0 top=9007199254740993 total=9007199254741994; "+
			"acct=9007199254740992 n=1 newer=0 top=1780921717355446272 total=1780921717355446272; "+
			"acct=9007199254740993 n=1 newer=1 top=1780921717355446273 total=1780921717355446273")
	wantText(t, strings.Join(c.letters(2), "\n"), "posts/2 Post", "posts/3 Post")
}

func TestFC12NaNInfinityAndMinusZero(t *testing.T) {
	c, in := one(t, `
type M @source(topic: "m") { s: String! v: Float }
type MS @view(from: "M", by: "s") { s: String! n: Long! @count lo: Float @min(of: "v") hi: Float @max(of: "v") avg: Float @avg(of: "v") }
type Query { ms(s: String!): MS @lookup }`, "m", 1, lines(1, `{"s":"a","v":NaN}`, `{"s":"a","v":1e400}`, `{"s":"a","v":"NaN"}`,
		`{"s":"a","v":0.0}`, `{"s":"a","v":-0.0}`, `{"s":"a","v":0}`)...)
	in.becomes(t, all("ms"), "n lo hi avg", "n=3 lo=0 hi=0 avg=0")
	wantText(t, strings.Join(c.letters(3), "\n"), "m/0 M", "m/1 M", "m/2 M")
}

func TestFC13ExactDecimals(t *testing.T) {
	_, in := one(t, `
type Fee @source(topic: "fees") { acct: String! amt: Decimal! }
type FeeSum @view(from: "Fee", by: "acct") { acct: String! sum: Decimal @sum(of: "amt") max: Decimal @max(of: "amt") }
type Query { feeSum(acct: String!): FeeSum @lookup }`, "fees", 1, lines(1, `{"acct":"a","amt":10.000}`, `{"acct":"a","amt":0.99999999999999999}`,
		`{"acct":"b","amt":"0.1"}`, `{"acct":"b","amt":0.2}`)...)
	in.becomes(t, all("fee-sum"), "acct sum max", "acct=a sum=10.99999999999999999 max=10; acct=b sum=0.3 max=0.2")
}

func TestFC15NullMissingEmptyAndTheWordNull(t *testing.T) {
	c, in := one(t, `
type T @source(topic: "t") { k: String! tag: String }
type ByK @view(from: "T", by: "k") { k: String! n: Long! @count }
type ByTag @view(from: "T", by: "tag") { tag: String n: Long! @count }
type ByTagged @view(from: "T", by: "tag") { tag: String! n: Long! @count }
type Query { byK(k: String!): ByK @lookup byTag(tag: String): ByTag @lookup byTagged(tag: String!): ByTagged @lookup }`, "t", 1,
		keyed("a", `{"k":"a","tag":"x"}`), keyed("a", `{"k":"a","tag":null}`), keyed("a", `{"k":"a"}`), keyed("a", `{"k":"a","tag":""}`),
		keyed("a", `{"k":"a","tag":"null"}`), keyed("a", `{"k":null,"tag":"x"}`), message{key: []byte("a")})
	in.becomes(t, all("by-k"), "k n", "k=a n=5")
	in.becomes(t, all("by-tag"), "tag n", "tag=null n=2; tag= n=1; tag=null n=1; tag=x n=1") // the third is the word
	in.becomes(t, all("by-tagged"), "tag n", "tag= n=1; tag=null n=1; tag=x n=1")
	if n := count(t, in.metrics.nullKeys.WithLabelValues("by-tagged")); n != 2 {
		t.Errorf("%v records dropped for a null key, want 2", n)
	}
	if n := count(t, in.metrics.tombstones.WithLabelValues("t")); n != 1 {
		t.Errorf("%v tombstones, want 1", n)
	}
	wantText(t, strings.Join(c.letters(1), "\n"), "t/5 T")
	get := func(key view.Value) read.Query {
		return read.Query{Store: "by-tag", Op: read.Get, Keys: [][]view.Value{{key}}}
	}
	if got := in.answer(t, get(view.OfString("")), "n"); got != "n=1" {
		t.Errorf("the empty text: %s", got)
	}
	if got := in.answer(t, get(view.Null), "n"); got != "n=2" {
		t.Errorf("null: %s", got)
	}
}

func TestFC15NullKafkaKey(t *testing.T) {
	c, in := one(t, `
type T @source(topic: "t", key: "k") { k: String! }
type ByK @view(from: "T", by: "k") { k: String! n: Long! @count }
type Query { byK(k: String!): ByK @lookup }`, "t", 1, message{value: []byte(`{"k":"a"}`)}, message{key: []byte{}, value: []byte(`{"k":""}`)})
	in.becomes(t, all("by-k"), "k n", "k= n=1")
	wantText(t, strings.Join(c.letters(1), "\n"), "t/0 T: the record has no Kafka key")
}

func TestFC16KeysThatSwallowEachOther(t *testing.T) {
	_, in := one(t, `
type R @source(topic: "r", time: "at") { a: String! b: String! m: Long! at: DateTime! c: Long! }
type AB @view(from: "R", by: ["a", "b"]) { a: String! b: String! c: Long! @sum }
type AM @view(from: "R", by: ["a", "m"]) { a: String! m: Long! c: Long! @sum }
type AW @view(from: "R", by: "a") @window(size: "1s", retain: "1d") { a: String! start: DateTime! @windowStart c: Long! @sum }
type Query { ab(a: String!, b: String!): AB @lookup am(a: String!, m: Long!): AM @lookup aw(a: String!, from: DateTime, to: DateTime): [AW!] @windows }`, "r", 1, lines(1,
		`{"a":"eur|+|chf","b":"chf","m":1,"at":"2024-01-01T00:00:01Z","c":1}`, `{"a":"eur","b":"chf|+|chf","m":1,"at":"2024-01-01T00:00:01Z","c":2}`,
		`{"a":"x","b":"\u0000y","m":9223372036854775807,"at":"2024-01-01T00:00:01Z","c":4}`, `{"a":"x\u0000","b":"y","m":0,"at":"2024-01-01T00:00:02Z","c":8}`,
		`{"a":"x","b":"","m":-1,"at":"2024-01-01T00:00:03Z","c":16}`, `{"a":"xx","b":"","m":2,"at":"2024-01-01T00:00:04Z","c":32}`,
		`{"a":"x","b":"z","m":11,"at":"2024-01-01T00:00:05Z","c":64}`)...)
	in.becomes(t, all("ab"), "c", "c=2; c=1; c=16; c=4; c=64; c=8; c=32")
	x := []view.Value{view.OfString("x")}
	in.becomes(t, read.Query{Store: "ab", Op: read.Range, First: 100, Prefix: x}, "c", "c=16; c=4; c=64")
	in.becomes(t, read.Query{Store: "ab", Op: read.Range, First: 100, HasText: true, Text: "x"}, "c", "c=16; c=4; c=64; c=8; c=32")
	in.becomes(t, read.Query{Store: "am", Op: read.Range, First: 100, Prefix: x}, "m c", "m=-1 c=16; m=11 c=64; m=9223372036854775807 c=4")
	in.becomes(t, windows("aw", x[0], "2024-01-01T00:00:00Z", "2024-01-01T00:00:10Z", 0, "", view.FillNone), "c", "c=4; c=16; c=64")

	// A cursor goes on in its own place, and never leads out of what is fixed.
	after := func(prefix []view.Value, cursor ...view.Value) read.Query {
		return read.Query{Store: "ab", Op: read.Range, First: 100, Prefix: prefix, After: view.AppendKeys(nil, cursor)}
	}
	in.becomes(t, after(x, x[0], view.OfString("\x00y")), "c", "c=64")
	in.becomes(t, after(x, view.OfString("eur"), view.OfString("")), "c", "c=16; c=4; c=64")
	in.becomes(t, after(x, view.OfString("xx"), view.OfString("")), "c", "")
	back := after(x, view.OfString("zz"), view.OfString(""))
	back.Reverse = true
	in.becomes(t, back, "c", "c=16; c=4; c=64") // answer sorts
}

func TestFC18KeyLongerThanTheStoreAllows(t *testing.T) {
	c := newTestCluster(t, `
type L @source(topic: "l", time: "at", key: "k") { k: String! at: DateTime! }
type ByL @view(from: "L", by: "k") { k: String! n: Long! @count }
type LMinute @view(from: "L", by: "k") @window(size: "1m", retain: "1d") { k: String! start: DateTime! @windowStart n: Long! @count }
type Query { byL(k: String!): ByL @lookup lMinute(k: String!): [LMinute!] @windows }`)
	c.create("l", 1)
	long := []string{strings.Repeat("a", 40_000), strings.Repeat("\x00", 20_000), strings.Repeat("b", 32_762), "ok"}
	for _, k := range long {
		text, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		c.produce("l", keyed(k, fmt.Sprintf(`{"k":%s,"at":"2024-01-01T00:00:00Z"}`, text)))
	}
	check := func(in *instance) {
		until(t, "the last", func() bool { return strings.HasSuffix(in.answer(t, all("by-l"), "k n"), "k=ok n=1") })
		if got := in.answer(t, all("by-l"), "n"); got != "n=1; n=1" {
			t.Errorf("by-l: %s", got)
		}
		if got := in.answer(t, all("l-minute"), "k n"); got != "k=ok n=1" {
			t.Errorf("l-minute: %.80s", got)
		}
		get := read.Query{Store: "by-l", Op: read.Get, Keys: [][]view.Value{{view.OfString(long[0])}}}
		if got := in.answer(t, get, "n"); got != "" {
			t.Errorf("a key of 40,000 bytes: %s", got)
		}
	}
	in := c.start("one", func(cfg *Config) { cfg.CheckpointInterval = 50 * time.Millisecond })
	check(in)
	until(t, "a checkpoint", func() bool { return histogramCount(t, in.metrics.checkpointSeconds) > 0 })
	if n := count(t, in.metrics.checkpointFailures); n != 0 {
		t.Errorf("%v checkpoints failed", n)
	}
	wantText(t, strings.Join(c.letters(5), "\n"), "l/0 ByL: key too long: 40002 bytes encoded, the limit is 32768",
		"l/0 LMinute", "l/1 ByL: key too long: 40002", "l/1 LMinute", "l/2 LMinute: key too long: 32772")
	if err := in.close(); err != nil {
		t.Fatal(err)
	}
	check(c.start("two"))
}

func histogramCount(t *testing.T, h prometheus.Histogram) uint64 {
	t.Helper()
	var m dto.Metric
	if err := h.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetHistogram().GetSampleCount()
}

func TestFC19ForeignPartitioner(t *testing.T) {
	const sdl = `
type D @source(topic: "d", key: "k") { k: String! }
type ByD @view(from: "D", by: "k") { k: String! n: Long! @count }
type Query { byD(k: String!): ByD @lookup }`
	record := message{partition: 9, key: []byte("TT0124"), value: []byte(`{"k":"TT0124"}`)}
	c := newTestCluster(t, sdl)
	c.create("d", 15)
	c.produce("d", record)
	wantText(t, c.refused(), `d offset 0: key "TT0124" is in partition 9, and MURMUR2 puts it in 10`, "declare the partitioner")
	_, in := one(t, strings.Replace(sdl, `key: "k"`, `key: "k", partitioner: CRC32`, 1), "d", 15, record)
	in.becomes(t, all("by-d"), "k n", "k=TT0124 n=1")
}

// The log ends in an aborted transaction and its marker: positions reach the end.
func TestFC21PositionsReachTheEnd(t *testing.T) {
	c := newTestCluster(t, `
type D @source(topic: "d") { k: String! v: Long! }
type ByD @view(from: "D", by: "k") { k: String! s: Long! @sum(of: "v") }
type Query { byD(k: String!): ByD @lookup }`)
	c.create("d", 2)
	tp := broker.TopicPartition{Topic: "d"}
	c.transact(t, tp, true, `{"k":"a","v":1}`, `{"k":"a","v":2}`)
	c.produce("d", lines(1, `{"k":"a","v":4}`)...)
	c.transact(t, tp, false, `{"k":"a","v":8}`, `{"k":"a","v":16}`)
	client := c.client()
	defer client.Close()
	c.produce("d", message{partition: 1, value: []byte(`{"k":"a","v":32}`)})
	expired := broker.TopicPartition{Topic: "d", Partition: 1}
	if err := client.DeleteRecords(t.Context(), map[broker.TopicPartition]int64{expired: 1}); err != nil {
		t.Fatal(err)
	}
	in := c.start("one")
	in.becomes(t, all("by-d"), "s", "s=7")
	ends, err := client.Offsets(t.Context(), []broker.TopicPartition{tp, expired}, broker.Latest)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the positions are the ends", func() bool {
		at, err := client.CommittedOffsets(t.Context(), c.app, []broker.TopicPartition{tp, expired})
		return err == nil && at[tp].Offset == ends[tp] && (at[expired].Offset == ends[expired] || at[expired].Offset < 0)
	})
	asOf := func() int64 {
		least := int64(0)
		for _, s := range in.Status().Tasks {
			if s.Lag != 0 {
				return 0
			}
			if least == 0 || s.AsOf < least {
				least = s.AsOf
			}
		}
		return least
	}
	until(t, "no lag", func() bool { return asOf() > 0 })
	first := asOf()
	until(t, "as-of goes on without records", func() bool { return asOf() > first })
	if err := in.close(); err != nil {
		t.Fatal(err)
	}
	c.start("two").becomes(t, all("by-d"), "s", "s=7") // the changelog ends in a marker too
}

// transact writes records in one transaction, committed or aborted.
func (c *testCluster) transact(t *testing.T, tp broker.TopicPartition, commit bool, values ...string) {
	t.Helper()
	client := c.client()
	defer client.Close()
	x := client.NewTransaction("producer", 10*time.Second)
	if err := x.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := broker.NewBatchBuilder(broker.None)
	for _, v := range values {
		b.Append(time.Now().UnixMilli(), nil, []byte(v), nil)
	}
	generation := int32(-1)
	if !commit {
		generation = 99 // refused: the transaction is aborted
	}
	_, err := x.Commit(t.Context(), broker.TxnCommit{
		Batches: []broker.TargetBatch{{TopicPartition: tp, Records: b}}, Group: "other", Generation: generation,
		Offsets: map[broker.TopicPartition]broker.OffsetCommit{tp: {Offset: 0}},
	})
	if commit != (err == nil) {
		t.Fatal(err)
	}
}

func TestFC23HeadersAreBytes(t *testing.T) {
	h := func(id string, headers ...broker.Header) message {
		return message{value: []byte(`{"id":"` + id + `"}`), headers: headers}
	}
	trace := func(v string) broker.Header { return broker.Header{Key: "trace", Value: []byte(v)} }
	c, in := one(t, `
type H @source(topic: "h") { id: String! trace: String @field(path: "$headers.trace") newkey: String @field(path: "$headers.__debezium.newkey") }
type HT @view(from: "H", by: "trace") { trace: String n: Long! @count newkey: String @last(of: "newkey") }
type Query { ht(trace: String): HT @lookup }`, "h", 1,
		h("1", trace("t1"), broker.Header{Key: "blob", Value: []byte("\xc3\x28\xff\x00")}),
		h("2", broker.Header{Key: "trace"}), h("3"), h("4", trace("a"), trace("b")), h("5", trace("\xc3\x28")),
		h("6", trace("t1"), broker.Header{Key: "__debezium.newkey", Value: []byte(`{"id":9}`)}))
	in.becomes(t, all("ht"), "trace n newkey", `trace=null n=2 newkey=null; trace=b n=1 newkey=null; trace=t1 n=2 newkey={\"id\":9}`)
	wantText(t, strings.Join(c.letters(1), "\n"), "h/4 H: ", "trace", "UTF-8")
}

func TestFC30TopWithTies(t *testing.T) {
	c, in := one(t, `
type Sale @source(topic: "sales", time: "at") { item: String! at: DateTime! q: Long! }
type ItemSum @view(from: "Sale", by: "item") { item: String! q: Long! @sum r: Float @avg(of: "q", where: "q > 5") }
type Query { best(first: Int!): [ItemSum!] @top(by: "q") rated(first: Int!): [ItemSum!] @top(by: "r") }`, "sales", 1, lines(1,
		`{"item":"b","at":"2024-01-01T00:00:00Z","q":5}`, `{"item":"a","at":"2024-01-01T00:00:00Z","q":5}`,
		`{"item":"c","at":"2024-01-01T00:00:00Z","q":5}`, `{"item":"d","at":"2024-01-01T00:00:00Z","q":4}`)...)
	top := func(by string, n int) string {
		q := read.Query{Store: "item-sum", Op: read.Top, Ranking: by, First: n}
		as, err := in.Read(t.Context(), []*read.Request{{Query: q}})
		if err != nil {
			t.Fatal(err)
		}
		if as[0].Err != nil {
			return as[0].Err.Code.String()
		}
		return strings.ReplaceAll(show(in.views["item-sum"], as[0].Rows, "item"), "item=", "")
	}
	until(t, "four items", func() bool { return top("q", 10) == "a; b; c; d" })
	for n, want := range map[int]string{0: "", 2: "a; b", 3: "a; b; c", -1: "bad input", 1001: "limit exceeded"} {
		if got := top("q", n); got != want {
			t.Errorf("best(%d) = %q, want %q", n, got, want)
		}
	}
	if got := top("r", 10); got != "a; b; c; d" {
		t.Errorf("rated = %q: without a value they come last, by key", got)
	}
	c.produce("sales", lines(1, `{"item":"c","at":"2024-01-01T00:00:00Z","q":1}`)...)
	until(t, "c leads", func() bool { return top("q", 2) == "c; a" })
	c.produce("sales", lines(1, `{"item":"c","at":"2024-01-01T00:00:00Z","q":-3}`)...)
	until(t, "c is last", func() bool { return top("q", 4) == "a; b; d; c" })

	var many []string
	for i := range 1500 {
		many = append(many, fmt.Sprintf(`{"item":"k%04d","at":"2024-01-01T00:00:00Z","q":100}`, i))
	}
	c.produce("sales", lines(1, many...)...)
	first := func(from int) string {
		var items []string
		for i := range 1000 {
			items = append(items, fmt.Sprintf("k%04d", from+i))
		}
		return strings.Join(items, "; ")
	}
	until(t, "the first thousand by key", func() bool { return top("q", 1000) == first(0) })
	var fall []string
	for i := range 300 {
		fall = append(fall, fmt.Sprintf(`{"item":"k%04d","at":"2024-01-01T00:00:00Z","q":-1}`, i))
	}
	c.produce("sales", lines(1, fall...)...)
	until(t, "repaired", func() bool { return top("q", 1000) == first(300) })
}
