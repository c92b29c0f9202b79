package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookAgain is how often, at most, files are looked at for changes.
const lookAgain = time.Second

// material is what the files held when they were read.
type material struct {
	pair  tls.Certificate
	roots *x509.CertPool
}

// files reads a certificate, its key and an authority, and reads them again when
// one of them has changed: when asked, so that nothing runs meanwhile. What
// cannot be read is logged, and what was read before stays in force: a rotation
// writes one file after the other. Safe for concurrent use.
type files struct {
	paths [3]string // certificate, key, authority
	check func(*material) error
	log   *slog.Logger

	mu     sync.Mutex // guards the following
	looked time.Time
	stamps [3]stamp
	now    *material
}

// stamp tells a file's versions apart.
type stamp struct {
	changed time.Time
	size    int64
}

func openFiles(cert, key, ca string, check func(*material) error, log *slog.Logger) (*files, error) {
	f := &files{paths: [3]string{cert, key, ca}, check: check, log: log, looked: time.Now()}
	var err error
	if f.stamps, err = f.stat(); err != nil {
		return nil, err
	}
	if f.now, err = f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// get is what the files hold.
func (f *files) get() *material {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) < lookAgain {
		return f.now
	}
	f.looked = time.Now()
	stamps, err := f.stat()
	if err == nil && stamps == f.stamps {
		return f.now
	}
	var fresh *material
	if err == nil {
		fresh, err = f.read()
	}
	if err != nil {
		f.log.Error("certificates not read again; those read before stay in force", "err", err)
		return f.now
	}
	f.log.Info("certificates read again", "file", f.paths[0])
	f.stamps, f.now = stamps, fresh
	return f.now
}

func (f *files) stat() (stamps [3]stamp, err error) {
	for i, path := range f.paths {
		info, err := os.Stat(path)
		if err != nil {
			return stamps, err
		}
		stamps[i] = stamp{info.ModTime(), info.Size()}
	}
	return stamps, nil
}

func (f *files) read() (*material, error) {
	pair, err := tls.LoadX509KeyPair(f.paths[0], f.paths[1])
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", f.paths[0], f.paths[1], err)
	}
	text, err := os.ReadFile(f.paths[2])
	if err != nil {
		return nil, err
	}
	m := &material{pair: pair, roots: x509.NewCertPool()}
	if !m.roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("authority %s: %w", f.paths[2], errNoPEM)
	}
	return m, f.check(m)
}

var errNoPEM = errors.New("no certificate in PEM form in it")
