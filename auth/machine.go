package auth

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// machinePrefix begins every machine token, so that scanners for leaked
// secrets can find one and a Verifier need not try it as a JWT.
const machinePrefix = "sgt_"

const (
	secretBytes  = 32
	recheck      = time.Second
	maxMachines  = 10_000
	maxTokenFile = 4 << 20
)

var (
	errNoMachines = errors.New("a machine token, but no tokens file is configured")
	errNoMachine  = errors.New("no machine token of this hash")
)

// GenerateToken makes a machine token: the secret for the machine, shown once,
// and the line for the tokens file, which holds only the secret's hash.
func GenerateToken(name string, scopes []string) (secret, line string, err error) {
	if err := checkName(name); err != nil {
		return "", "", err
	}
	for _, s := range scopes {
		if s == "" || strings.ContainsAny(s, ", \t\r\n#") {
			return "", "", fmt.Errorf("scope %q: need a text without spaces, commas and #", s)
		}
	}
	b := make([]byte, secretBytes)
	if _, err := rand.Read(b); err != nil {
		return "", "", fmt.Errorf("making a token: %w", err)
	}
	secret = machinePrefix + base64.RawURLEncoding.EncodeToString(b)
	sum := sha256.Sum256([]byte(secret))
	line = strings.TrimRight(name+" "+hex.EncodeToString(sum[:])+" "+strings.Join(scopes, ","), " ")
	return secret, line, nil
}

func checkName(name string) error {
	if name == "" || strings.ContainsAny(name, " \t\r\n#") {
		return fmt.Errorf("name %q: need a text without spaces and #", name)
	}
	return nil
}

// machines are the machine tokens of a file: a line each, `name sha256-hex
// scope,scope`; empty lines and those that begin with # are skipped. The file is
// looked at once a second at most and read again when its time or size has
// changed. While it cannot be read the tokens last read stay good.
type machines struct {
	file string
	now  func() time.Time
	log  *slog.Logger

	tokens  atomic.Pointer[[]machine]
	checked atomic.Int64 // when the file was last looked at, ms
	mu      sync.Mutex   // guards stamp, and reading
	stamp   stamp
}

type machine struct {
	hash      [sha256.Size]byte
	principal *Principal
}

type stamp struct {
	modified time.Time
	size     int64
}

func openMachines(file string, now func() time.Time, log *slog.Logger) (*machines, error) {
	m := &machines{file: file, now: now, log: log}
	m.checked.Store(now().UnixMilli())
	if err := m.read(); err != nil {
		return nil, fmt.Errorf("auth: tokens file: %w", err)
	}
	return m, nil
}

// verify compares the token's hash with every known one in constant time.
func (m *machines) verify(token string) (*Principal, error) {
	if m == nil {
		return nil, refuse(errNoMachines)
	}
	m.refresh()
	sum := sha256.Sum256([]byte(token))
	var found *Principal
	list := *m.tokens.Load()
	for i := range list {
		if subtle.ConstantTimeCompare(sum[:], list[i].hash[:]) == 1 {
			found = list[i].principal
		}
	}
	if found == nil {
		return nil, refuse(errNoMachine)
	}
	return found, nil
}

// refresh reads the file again if it has changed; one caller a second looks.
func (m *machines) refresh() {
	now := m.now().UnixMilli()
	last := m.checked.Load()
	if now-last < recheck.Milliseconds() || !m.checked.CompareAndSwap(last, now) {
		return
	}
	if err := m.read(); err != nil {
		m.log.Warn("reading the tokens file; those read before stay good", "file", m.file, "cause", err)
	}
}

func (m *machines) read() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	info, err := os.Stat(m.file)
	if err != nil {
		return err
	}
	s := stamp{info.ModTime(), info.Size()}
	if m.tokens.Load() != nil && s == m.stamp {
		return nil
	}
	if s.size > maxTokenFile {
		return fmt.Errorf("%s: larger than %d bytes", m.file, maxTokenFile)
	}
	list, err := readMachines(m.file)
	if err != nil {
		return err
	}
	m.stamp = s
	m.tokens.Store(&list)
	return nil
}

func readMachines(file string) ([]machine, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []machine
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		line := strings.TrimSpace(in.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		t, err := parseMachine(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if list = append(list, t); len(list) > maxMachines {
			return nil, fmt.Errorf("%s: more than %d tokens", file, maxMachines)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}

func parseMachine(line string) (machine, error) {
	var t machine
	parts := strings.Fields(line)
	if len(parts) < 2 || len(parts) > 3 {
		return t, errors.New("need a name, the SHA-256 of the token in hex, and its scopes with commas between them")
	}
	if n, err := hex.Decode(t.hash[:], []byte(parts[1][:min(len(parts[1]), 2*sha256.Size)])); err != nil || n != sha256.Size || len(parts[1]) != 2*sha256.Size {
		return t, fmt.Errorf("token %s: need the SHA-256 of the token, %d hex digits", parts[0], 2*sha256.Size)
	}
	var scopes []string
	if len(parts) == 3 {
		scopes = strings.Split(parts[2], ",")
	}
	t.principal = NewPrincipal(parts[0], scopes...)
	return t, nil
}
