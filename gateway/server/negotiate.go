package server

import (
	"strconv"
	"strings"
)

// media is a form of a response.
type media uint8

const (
	none         media = iota
	plainJSON          // application/json: 200 for every well-formed request
	responseJSON       // application/graphql-response+json: 400 when not executed
	eventStream        // text/event-stream
)

const (
	acceptEvents   = "text/event-stream"
	acceptJSON     = "application/json"
	acceptResponse = "application/graphql-response+json"
)

// accepted is what an Accept header takes: the preferred form of a single
// response (none: no such), and whether text/event-stream was named.
type accepted struct {
	single media
	events bool
}

// negotiate reads an Accept header (RFC 9110 section 12.5.1) as GraphQL over
// HTTP wants it: application/json when there is none or anything will do; of
// several the one with the highest quality, then the first.
func negotiate(header []string) accepted {
	if len(header) == 0 {
		return accepted{single: plainJSON}
	}
	if len(header) == 1 {
		switch header[0] {
		case "", "*/*", acceptJSON:
			return accepted{single: plainJSON}
		case acceptResponse:
			return accepted{single: responseJSON}
		case acceptEvents:
			return accepted{events: true}
		}
	}
	var a accepted
	best := 0.0
	for _, h := range header {
		for part := range strings.SplitSeq(h, ",") {
			kind, quality := mediaRange(part)
			switch {
			case quality <= 0 || kind == none:
			case kind == eventStream:
				a.events = true
			case quality > best:
				best, a.single = quality, kind
			}
		}
	}
	return a
}

// mediaRange reads one element of an Accept header.
func mediaRange(part string) (kind media, quality float64) {
	name, params, _ := strings.Cut(part, ";")
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "*/*", "application/*", acceptJSON:
		kind = plainJSON
	case acceptResponse:
		kind = responseJSON
	case acceptEvents:
		kind = eventStream
	}
	quality = 1
	for param := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		switch strings.ToLower(key) {
		case "q":
			q, err := strconv.ParseFloat(value, 64)
			if err != nil {
				q = 0
			}
			quality = q
		case "charset":
			if !strings.EqualFold(strings.Trim(value, `"`), "utf-8") {
				quality = 0
			}
		}
	}
	return kind, quality
}

// jsonContent says whether a Content-Type header is JSON in UTF-8.
func jsonContent(header []string) bool {
	if len(header) != 1 {
		return false
	}
	if header[0] == acceptJSON {
		return true
	}
	kind, quality := mediaRange(header[0])
	return kind == plainJSON && quality > 0 && !strings.Contains(header[0], "*") && !strings.Contains(header[0], ",")
}
