package oracle

import (
	"strconv"
	"time"
)

// Event is a departure, the source record of every view.
type Event struct {
	Key         string // the origin
	Date        int64  // ms
	Destination string
	Delay       int64
	Distance    int64
}

// JSON is the record's value.
func (e *Event) JSON() []byte {
	b := append(make([]byte, 0, 128), `{"date":"`...)
	b = time.UnixMilli(e.Date).UTC().AppendFormat(b, time.RFC3339)
	b = append(b, `","origin":`...)
	b = strconv.AppendQuote(b, e.Key)
	b = append(b, `,"destination":`...)
	b = strconv.AppendQuote(b, e.Destination)
	b = append(b, `,"delay":`...)
	b = strconv.AppendInt(b, e.Delay, 10)
	b = append(b, `,"distance":`...)
	b = strconv.AppendInt(b, e.Distance, 10)
	return append(b, '}')
}
