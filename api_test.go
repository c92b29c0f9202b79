package streamgauge

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The demo's token is for a browser on the same machine alone.
func TestFromHere(t *testing.T) {
	for _, c := range []struct {
		local, host string
		want        bool
	}{
		{"127.0.0.1:8080", "127.0.0.1:8080", true},
		{"127.0.0.1:8080", "localhost:8080", true},
		{"127.0.0.1:8080", "localhost", true},
		{"[::1]:8080", "[::1]:8080", true},
		{"[::1]:8080", "[::1]", true},
		{"[::ffff:127.0.0.1]:8080", "127.0.0.1:8080", true},
		{"127.0.0.1:8080", "rebound.example:8080", false},
		{"127.0.0.1:8080", "localhost.example", false},
		{"127.0.0.1:8080", "192.0.2.7:8080", false},
		{"192.0.2.7:8080", "192.0.2.7:8080", false},
		{"192.0.2.7:8080", "localhost:8080", false},
		{"192.0.2.7:8080", "127.0.0.1:8080", false},
		{"127.0.0.1:8080", "", false},
	} {
		local, err := net.ResolveTCPAddr("tcp", c.local)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/api/page", nil)
		r.Host = c.host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
		if got := fromHere(r); got != c.want {
			t.Errorf("to %s as %q: got %t", c.local, c.host, got)
		}
	}
	if fromHere(httptest.NewRequest(http.MethodGet, "http://localhost/api/page", nil)) {
		t.Error("a request that came by no address is taken for one from here")
	}
}
