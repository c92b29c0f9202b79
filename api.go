package streamgauge

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/gateway/server"
	"github.com/streamgauge/streamgauge/processor"
)

// pageInfo is what the dashboard must know before it can ask anything.
type pageInfo struct {
	App      string `json:"app"`
	Title    string `json:"title"`
	Auth     string `json:"auth"`            // dev, jwt or off
	Token    string `json:"token,omitempty"` // of the demo alone
	Demo     bool   `json:"demo"`
	Instance string `json:"instance"`
	Query    string `json:"query"` // to begin with; may be empty
}

// instanceInfo is one instance as the dashboard shows it, and as instances tell
// each other.
type instanceInfo struct {
	ID         string                  `json:"id"`
	HTTP       string                  `json:"http"`
	Rack       string                  `json:"rack,omitempty"`
	Gateway    bool                    `json:"gateway,omitempty"` // without a worker
	Self       bool                    `json:"self"`
	Running    bool                    `json:"running"`
	Silent     bool                    `json:"silent,omitempty"` // it does not answer; tasks are what the routes say
	Ready      bool                    `json:"ready"`
	Reason     string                  `json:"reason"`
	Live       bool                    `json:"live"`       // it has heard of the group within a session timeout
	Generation int64                   `json:"generation"` // of the group, or of the routes
	Tasks      []processor.TaskStatus  `json:"tasks"`
	Tables     []processor.TableStatus `json:"tables"`
	Breakers   map[string]string       `json:"breakers,omitempty"` // state by instance
}

// cluster is what can be told and done about the instances beside this one.
type cluster interface {
	instances(self string) []instanceInfo
	stopInstance(id string) error
	startInstance(id string) error
}

var (
	errNoInstance   = errors.New("no such instance")
	errLastInstance = errors.New("it is the last one running: start another first")
)

// api serves what the dashboard asks besides GraphQL.
func (e *edge) api(s setup, instances func(context.Context) []instanceInfo) map[string]http.Handler {
	info := s.page
	info.Instance = s.cfg.Instance
	routes := map[string]http.Handler{
		"GET /api/page": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			shown := info
			if !fromHere(r) {
				shown.Token = ""
			}
			writeJSON(w, http.StatusOK, shown)
		}),
		"GET /api/instances": e.guard(s, func(w http.ResponseWriter, r *http.Request) {
			writeJSON(w, http.StatusOK, map[string]any{"demo": info.Demo, "instances": instances(r.Context())})
		}),
	}
	if s.cluster == nil {
		return routes
	}
	for name, do := range map[string]func(string) error{"stop": s.cluster.stopInstance, "start": s.cluster.startInstance} {
		routes["POST /api/instances/{id}/"+name] = e.guard(s, func(w http.ResponseWriter, r *http.Request) {
			switch err := do(r.PathValue("id")); {
			case errors.Is(err, errNoInstance):
				refuse(w, http.StatusNotFound, server.CodeBadInput, err.Error())
			case err != nil:
				refuse(w, http.StatusConflict, server.CodeBadInput, err.Error())
			default:
				writeJSON(w, http.StatusOK, map[string]any{"ok": true})
			}
		})
	}
	return routes
}

// fromHere says whether a request came over loopback, to a name of loopback. By
// another name it may come from a page whose name was made to point here, and by
// another way from another machine: the demo's token is not for them.
func fromHere(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return false
	}
	name := r.Host
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	}
	return loopbackName(strings.Trim(name, "[]"))
}

// loopbackName says whether a host is localhost or an address of loopback.
func loopbackName(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// guard lets those through whose token covers every store: what it guards tells
// of all of them.
func (e *edge) guard(s setup, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		p, err := s.verifier.Verify(r.Context(), bearer)
		if err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, server.CodeUnauthenticated, "unauthenticated")
			return
		}
		ctx := auth.With(r.Context(), p)
		for _, v := range s.topology.Views {
			if err := auth.Allow(ctx, v.Scope); err != nil {
				refuse(w, http.StatusForbidden, server.CodeForbidden, "forbidden")
				return
			}
		}
		next(w, r.WithContext(ctx))
	})
}

// refuse answers in the form of GraphQL errors, as everything here does.
func refuse(w http.ResponseWriter, status int, code, message string) {
	writeJSON(w, status, map[string]any{"errors": []any{
		map[string]any{"message": message, "extensions": map[string]any{"code": code}},
	}})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The client is gone when this fails; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(body)
}
