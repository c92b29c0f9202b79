package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/streamgauge/streamgauge/auth"
)

// operation is one running over a socket.
type operation struct {
	k      *socket
	id     string
	quoted []byte // the id as JSON
	cancel context.CancelFunc
}

// subscribe starts an operation, whatever its kind.
func (k *socket) subscribe(m message) {
	switch {
	case !k.isAcknowledged():
		k.end(closeUnauthorized, "unauthorized")
		return
	case m.ID == "" || len(m.ID) > maxID:
		k.end(closeBadRequest, "subscribe needs an id")
		return
	}
	q, err := decodeRequest(m.Payload)
	if err != nil {
		k.end(closeBadRequest, "subscribe: "+err.Error())
		return
	}
	quoted, err := json.Marshal(m.ID)
	if err != nil {
		k.end(closeBadRequest, "subscribe needs an id")
		return
	}
	ctx, cancel := context.WithCancel(auth.With(k.ctx, k.principal))
	op := &operation{k: k, id: m.ID, quoted: quoted, cancel: cancel}
	switch errs, ok := k.register(op); {
	case errs != nil:
		k.s.count(errs)
		k.send(op.message("error", errsJSON(errs)))
	case !ok:
		k.end(closeDuplicate, "an operation of this id is running")
	default:
		k.work.Go(func() {
			defer cancel()
			op.run(ctx, q)
		})
		return
	}
	cancel()
}

// register makes room for an operation: ok, or the errors why there is none, or
// neither when one of its id is running.
func (k *socket) register(op *operation) (errs gqlerror.List, ok bool) {
	if wait, ok := k.s.takeFor(k.principal, k.r); !ok {
		return gqlerror.List{tooMany(wait).error()}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.operations[op.id] != nil:
		return nil, false
	case over(len(k.operations)+1, k.s.limits.Subscriptions):
		return problem(CodeLimit, "too many operations on this socket: at most %d", k.s.limits.Subscriptions), false
	}
	k.operations[op.id] = op
	return nil, true
}

// forget ends the operation of an id, if there is one: nothing more is sent for
// it.
func (k *socket) forget(id string) {
	k.mu.Lock()
	op := k.operations[id]
	delete(k.operations, id)
	k.mu.Unlock()
	if op != nil {
		op.cancel()
	}
}

// run prepares and runs the operation, and says how it ended.
func (op *operation) run(ctx context.Context, q *request) {
	s := op.k.s
	defer s.guard(op)
	start := time.Now()
	oc, errs := s.prepare(ctx, q, op.k.r.Header)
	if errs != nil {
		s.count(errs)
		op.fail(errs)
		return
	}
	s.run(ctx, oc, op)
	if oc.Operation.Operation == ast.Query {
		since(s.metrics.socket, start)
	}
	op.finish("complete", nil)
}

// over says whether the operation has ended for the client: by its complete, by
// our last message, or with the socket.
func (op *operation) over() bool {
	op.k.mu.Lock()
	defer op.k.mu.Unlock()
	return op.k.ended || op.k.operations[op.id] != op
}

func (op *operation) next(response []byte) bool {
	b := make([]byte, 0, len(response)+len(op.quoted)+40)
	b = append(append(b, `{"id":`...), op.quoted...)
	b = append(append(append(b, `,"type":"next","payload":`...), response...), '}')
	return op.k.write(b, op.over)
}

func (op *operation) fail(errs gqlerror.List) bool {
	return op.finish("error", errsJSON(errs))
}

// finish sends the operation's last message, unless it is over. Its id is free
// again by the time the client has read it.
func (op *operation) finish(kind string, payload []byte) bool {
	b, err := json.Marshal(op.message(kind, payload))
	if err != nil {
		op.k.drop()
		return false
	}
	return op.k.write(b, func() bool {
		op.k.mu.Lock()
		defer op.k.mu.Unlock()
		if op.k.ended || op.k.operations[op.id] != op {
			return true
		}
		delete(op.k.operations, op.id)
		return false
	})
}

func (op *operation) message(kind string, payload []byte) message {
	return message{ID: op.id, Type: kind, Payload: payload}
}

// errsJSON is the payload of an error message: the list itself.
func errsJSON(errs gqlerror.List) []byte {
	b, err := json.Marshal(errs)
	if err != nil {
		return []byte(`[{"message":"internal error","extensions":{"code":"INTERNAL"}}]`)
	}
	return b
}
