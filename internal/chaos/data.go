package chaos

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/streamgauge/streamgauge/internal/chaos/oracle"
)

const (
	partitions = 6
	// squeeze is by how much event time is shorter than in the data: a day of
	// flights in an hour, so that a run of minutes does not take months of event
	// time, and windows hold several flights.
	squeeze = 24
	// ahead is by how much event time may pass a record that is on its way. More
	// than the grace, and a record that a broker held up would rightly be late.
	ahead = 25 * time.Minute
	// hot are the generated keys that the probes read, a few a partition.
	hot = 2 * partitions
)

// airport is a row of the table.
type airport struct {
	IATA string  `json:"iata"`
	Name string  `json:"name"`
	City *string `json:"city"`
}

// lines reads a file of the example's data.
func lines(root, name string) ([][]byte, error) {
	f, err := os.Open(filepath.Join(root, "cmd", "flights", "data", name))
	if err != nil {
		return nil, fmt.Errorf("read data: %w", err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	var out [][]byte
	s := bufio.NewScanner(r)
	for s.Scan() {
		out = append(out, append([]byte(nil), s.Bytes()...))
	}
	return out, s.Err()
}

// realFlights are the flights, at most so many, in squeezed event time.
func realFlights(root string, most int) ([]oracle.Event, error) {
	text, err := lines(root, "flights-20k.jsonl.gz")
	if err != nil {
		return nil, err
	}
	var out []oracle.Event
	var first time.Time
	for _, line := range text[:min(most, len(text))] {
		var r struct {
			Date                time.Time
			Origin, Destination string
			Delay, Distance     int64
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("flights: %w", err)
		}
		if first.IsZero() {
			first = r.Date
		}
		at := first.Add(r.Date.Sub(first) / squeeze).Truncate(time.Second)
		out = append(out, oracle.Event{Key: r.Origin, Date: at.UnixMilli(), Destination: r.Destination, Delay: r.Delay, Distance: r.Distance})
	}
	return out, nil
}

// generator makes flights of many airports that do not exist, each of one
// partition.
type generator struct {
	rng  *rand.Rand
	keys int
}

func newGenerator(seed uint64, keys int) *generator {
	return &generator{rand.New(rand.NewPCG(seed, 2)), keys}
}

// generated is the name of a key. Its first letters are few, for pages by
// prefix, and no real airport begins so.
func generated(i int) string {
	return fmt.Sprintf("%c%c%05d", 'z', 'a'+rune(i%20), i)
}

func partitionOf(i int) int { return i % partitions }

// next is a record at an event time, and its partition.
func (g *generator) next(date int64) (int, oracle.Event) {
	u := g.rng.Float64()
	i := int(u * u * u * float64(g.keys)) // few have many
	if g.rng.IntN(10) == 0 {
		i = g.rng.IntN(hot)
	}
	delay := int64(g.rng.NormFloat64()*30 + 8)
	e := oracle.Event{Key: generated(i), Date: date, Destination: generated(g.rng.IntN(g.keys)), Delay: delay, Distance: 100 + g.rng.Int64N(3000)}
	return partitionOf(i), e
}
