package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed all:dist
var dist embed.FS

// What each page may load (https://www.w3.org/TR/CSP3/): its own scripts and
// styles, and 'self' for connections, which covers websockets of the same host
// and port. GraphiQL's editor writes style elements as it runs, holds small
// images in its style sheet, and works in threads of its own.
const (
	closed          = "default-src 'none'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
	dashboardPolicy = closed + "style-src 'self'; img-src 'self'"

	playgroundPolicy = closed + "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; worker-src 'self'"
)

// Dashboard serves the dashboard at / and its assets below. Any other path is
// not found.
func Dashboard() http.Handler { return newSite("dashboard", "", dashboardPolicy) }

// Playground serves the playground at / and its assets below, for a mount at
// /playground/, whether the prefix is still in the path or removed.
func Playground() http.Handler { return newSite("playground", "/playground", playgroundPolicy) }

// site is one page with its assets. Immutable but for what is compressed on
// first use; safe for concurrent use.
type site struct {
	prefix string
	policy string
	files  map[string]*file // by path, "index.html" for the page itself
}

// file is a file as it is sent.
type file struct {
	content   []byte
	kind      string // its media type
	tag       string // its ETag
	immutable bool   // its name holds a hash of its content
	gzipped   func() []byte
}

// smallest is the size in bytes from which a file is compressed.
const smallest = 1 << 10

// hashed is the form of names that change with their content.
var hashed = regexp.MustCompile(`^assets/.+-[\w-]{8}\.\w+$`)

// newSite reads a folder of dist. That folder is compiled in: an error is a
// broken build.
func newSite(folder, prefix, policy string) *site {
	s := &site{prefix: prefix, policy: policy, files: map[string]*file{}}
	root, err := fs.Sub(dist, "dist/"+folder)
	if err == nil {
		err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := fs.ReadFile(root, name)
			s.files[name] = newFile(name, content)
			return err
		})
	}
	if err != nil || s.files["index.html"] == nil {
		panic(fmt.Sprintf("web: dist/%s is not whole: %v", folder, err))
	}
	return s
}

func newFile(name string, content []byte) *file {
	sum := sha256.Sum256(content)
	f := &file{
		content:   content,
		kind:      mediaType(name),
		tag:       `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`,
		immutable: hashed.MatchString(name),
	}
	f.gzipped = sync.OnceValue(func() []byte { return compress(f.content) })
	return f
}

// mediaType goes by the name's end. The types that pages hang on are written
// here: the tables of some systems have others.
func mediaType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".md":
		return "text/plain; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".ttf":
		return "font/ttf"
	default:
		if kind := mime.TypeByExtension(ext); kind != "" {
			return kind
		}
		return "application/octet-stream"
	}
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	// No errors: the level is valid, and a Buffer takes everything.
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = w.Write(content)
	_ = w.Close()
	return b.Bytes()
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	name := r.URL.Path
	if s.prefix != "" && (name == s.prefix || strings.HasPrefix(name, s.prefix+"/")) {
		name = name[len(s.prefix):]
		if name == "" {
			// The page's own addresses are relative to the folder.
			http.Redirect(w, r, s.prefix+"/", http.StatusPermanentRedirect)
			return
		}
	}
	name = strings.TrimPrefix(name, "/")
	if name == "" {
		name = "index.html"
	}
	f := s.files[name]
	if f == nil {
		http.NotFound(w, r)
		return
	}
	s.send(w, r, f)
}

func (s *site) send(w http.ResponseWriter, r *http.Request, f *file) {
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", s.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if f.immutable {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body, tag := f.content, f.tag
	if len(body) >= smallest && !strings.HasPrefix(f.kind, "font/") && acceptsGzip(r.Header.Get("Accept-Encoding")) {
		body, tag = f.gzipped(), strings.TrimSuffix(tag, `"`)+`-gzip"`
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", tag)
	if matches(r.Header.Get("If-None-Match"), f.tag, tag) {
		h.Del("Content-Encoding")
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // an error is the client's leaving
	}
}

// acceptsGzip reads an Accept-Encoding header (RFC 9110, 12.5.3).
func acceptsGzip(header string) bool {
	for coding := range strings.SplitSeq(header, ",") {
		name, weight, weighted := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		if !weighted {
			return true
		}
		_, q, _ := strings.Cut(weight, "=")
		v, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return err == nil && v > 0
	}
	return false
}

// matches reads an If-None-Match header (RFC 9110, 13.1.2).
func matches(header string, tags ...string) bool {
	for field := range strings.SplitSeq(header, ",") {
		field = strings.TrimPrefix(strings.TrimSpace(field), "W/")
		if field == "*" {
			return true
		}
		for _, tag := range tags {
			if field == tag {
				return true
			}
		}
	}
	return false
}
