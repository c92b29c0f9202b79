package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func serve(t *testing.T, h http.Handler, method, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) []byte {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("reading the body: %v", err)
	}
	return b
}

var pages = map[string]func() http.Handler{"dashboard": Dashboard, "playground": Playground}

// assets are the addresses that a page refers to.
var assets = regexp.MustCompile(`(?:src|href)="\./(assets/[^"]+)"`)

func TestPageAndItsAssets(t *testing.T) {
	for name, handler := range pages {
		t.Run(name, func(t *testing.T) {
			h := handler()
			r := serve(t, h, "GET", "/")
			page := body(t, r)
			if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/html; charset=utf-8" {
				t.Fatalf("got %d %q, want 200 and HTML", r.StatusCode, r.Header.Get("Content-Type"))
			}
			if got := r.Header.Get("Cache-Control"); got != "no-cache" {
				t.Errorf("page: Cache-Control %q, want no-cache", got)
			}
			found := assets.FindAllSubmatch(page, -1)
			if len(found) < 3 {
				t.Fatalf("the page refers to %d assets, want icon, script and style sheet", len(found))
			}
			for _, m := range found {
				r := serve(t, h, "GET", "/"+string(m[1]))
				if r.StatusCode != 200 || len(body(t, r)) == 0 {
					t.Errorf("%s: got %d, want content", m[1], r.StatusCode)
				}
				if got := r.Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
					t.Errorf("%s: Cache-Control %q, want immutable", m[1], got)
				}
			}
		})
	}
}

// A page that refers to another host, or holds a script, would not work under
// its own policy.
func TestPagesAreTheirOwn(t *testing.T) {
	outside := regexp.MustCompile(`(?:src|href)="(?:https?:)?//|<script(?:>| [^>]*>[^<])|\son\w+=|\sstyle=`)
	for name, handler := range pages {
		page := body(t, serve(t, handler(), "GET", "/"))
		if m := outside.Find(page); m != nil {
			t.Errorf("%s: has %q", name, m)
		}
	}
}

func TestPolicies(t *testing.T) {
	for name, handler := range pages {
		got := serve(t, handler(), "GET", "/").Header
		policy := got.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy+";", want+";") {
				t.Errorf("%s: policy %q lacks %q", name, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe-eval") || strings.Contains(policy, "*") || strings.Contains(policy, "http") {
			t.Errorf("%s: policy %q lets in what it must not", name, policy)
		}
		if got.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: may be sniffed", name)
		}
	}
	if policy := serve(t, Dashboard(), "GET", "/").Header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") {
		t.Errorf("dashboard: policy %q has something unsafe", policy)
	}
}

func TestEveryFileHasATypeAndAnImmutableName(t *testing.T) {
	err := fs.WalkDir(dist, "dist", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.SplitN(p, "/", 3)[2]
		if kind := mediaType(name); kind == "application/octet-stream" {
			t.Errorf("%s: no media type", p)
		}
		if name != "index.html" && name != "licenses.md" && !hashed.MatchString(name) {
			t.Errorf("%s: its name does not hold a hash", p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPlaygroundWithAndWithoutPrefix(t *testing.T) {
	h := Playground()
	plain := body(t, serve(t, h, "GET", "/"))
	if prefixed := body(t, serve(t, h, "GET", "/playground/")); !bytes.Equal(plain, prefixed) {
		t.Error("/playground/ is not the page at /")
	}
	r := serve(t, h, "GET", "/playground")
	if r.StatusCode != http.StatusPermanentRedirect || r.Header.Get("Location") != "/playground/" {
		t.Errorf("/playground: got %d to %q, want a redirect to /playground/", r.StatusCode, r.Header.Get("Location"))
	}
}

func TestNotFoundAndMethods(t *testing.T) {
	tests := []struct {
		method, path string
		want         int
	}{
		{"GET", "/nothing", 404},
		{"GET", "/assets/", 404},
		{"GET", "/assets", 404},
		{"GET", "/../web.go", 404},
		{"GET", "/playground/", 404},
		{"POST", "/", 405},
		{"DELETE", "/index.html", 405},
		{"HEAD", "/", 200},
	}
	h := Dashboard()
	for _, tt := range tests {
		if got := serve(t, h, tt.method, tt.path); got.StatusCode != tt.want {
			t.Errorf("%s %s: got %d, want %d", tt.method, tt.path, got.StatusCode, tt.want)
		}
	}
	if r := serve(t, h, "HEAD", "/"); len(body(t, r)) != 0 || r.Header.Get("Content-Length") == "" {
		t.Error("HEAD / has a body, or lacks the length")
	}
}

func TestGzip(t *testing.T) {
	h := Dashboard()
	script := "/" + string(regexp.MustCompile(`assets/[^"]+\.js`).Find(body(t, serve(t, h, "GET", "/"))))
	plain := body(t, serve(t, h, "GET", script))

	r := serve(t, h, "GET", script, "Accept-Encoding", "br, gzip;q=0.8")
	if r.Header.Get("Content-Encoding") != "gzip" || r.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatalf("got encoding %q, vary %q", r.Header.Get("Content-Encoding"), r.Header.Get("Vary"))
	}
	sent := body(t, r)
	z, err := gzip.NewReader(bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(z)
	if err != nil || !bytes.Equal(unpacked, plain) {
		t.Errorf("unpacked content differs from the plain one (%v)", err)
	}
	if len(sent) >= len(plain) {
		t.Errorf("%d bytes compressed to %d", len(plain), len(sent))
	}

	for _, refused := range []string{"", "identity", "gzip;q=0", "gzip; q=0.0", "br", "gzipped"} {
		if got := serve(t, h, "GET", script, "Accept-Encoding", refused).Header.Get("Content-Encoding"); got != "" {
			t.Errorf("Accept-Encoding %q: got %q", refused, got)
		}
	}
}

func TestNotModified(t *testing.T) {
	h := Dashboard()
	for _, encoding := range []string{"", "gzip"} {
		tag := serve(t, h, "GET", "/", "Accept-Encoding", encoding).Header.Get("ETag")
		for header, want := range map[string]int{tag: 304, "W/" + tag: 304, `"other", ` + tag: 304, "*": 304, `"other"`: 200} {
			r := serve(t, h, "GET", "/", "Accept-Encoding", encoding, "If-None-Match", header)
			if r.StatusCode != want {
				t.Errorf("encoding %q, If-None-Match %s: got %d, want %d", encoding, header, r.StatusCode, want)
			}
			if r.StatusCode == 304 && (len(body(t, r)) != 0 || r.Header.Get("ETag") == "") {
				t.Errorf("If-None-Match %s: a 304 with a body or without its tag", header)
			}
		}
	}
}
