package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// errEnded is a subscription that the server ended.
var errEnded = errors.New("the subscription was ended")

// silence is how long a stream may say nothing, heartbeats included, before it
// counts as dead.
const silence = 30 * time.Second

// events subscribes by server-sent events and hands on each.
func events(ctx context.Context, c *http.Client, addr string, request []byte, each func(answer)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/graphql", bytes.NewReader(request))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	dead := time.AfterFunc(silence, cancel)
	defer dead.Stop()
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	kind := ""
	for lines.Scan() {
		dead.Reset(silence)
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "event: "):
			kind = line[7:]
		case strings.HasPrefix(line, "data: ") && kind == "next":
			each(parse([]byte(line[6:])))
		}
		if kind == "complete" {
			return errEnded
		}
	}
	return errors.Join(lines.Err(), errEnded)
}

// message is one of the graphql-transport-ws protocol.
type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// socket subscribes by websocket and hands on each event.
func socket(ctx context.Context, addr string, request []byte, each func(answer)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dead := time.AfterFunc(silence, cancel)
	defer dead.Stop()
	ws, _, err := websocket.Dial(ctx, "ws://"+addr+"/graphql", &websocket.DialOptions{
		Subprotocols:   []string{"graphql-transport-ws"},
		OnPingReceived: func(context.Context, []byte) bool { dead.Reset(silence); return true },
	})
	if err != nil {
		return err
	}
	defer func() { _ = ws.CloseNow() }() // how it ended is known
	ws.SetReadLimit(16 << 20)
	send := func(m message) error {
		b, err := json.Marshal(m)
		if err != nil {
			return err
		}
		return ws.Write(ctx, websocket.MessageText, b)
	}
	if err := send(message{Type: "connection_init"}); err != nil {
		return err
	}
	for {
		_, b, err := ws.Read(ctx)
		if err != nil {
			return err
		}
		dead.Reset(silence)
		var m message
		if err := json.Unmarshal(b, &m); err != nil {
			return fmt.Errorf("a message of the websocket: %w", err)
		}
		switch m.Type {
		case "connection_ack":
			err = send(message{ID: "1", Type: "subscribe", Payload: request})
		case "ping":
			err = send(message{Type: "pong"})
		case "next":
			each(parse(m.Payload))
		case "error":
			each(parse([]byte(`{"errors":` + string(m.Payload) + `}`)))
			return errEnded
		case "complete":
			return errEnded
		}
		if err != nil {
			return err
		}
	}
}
