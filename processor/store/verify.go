package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The parts of bbolt's file format that the walk needs, of version 2 (bbolt
// internal/common: meta.go, page.go, inode.go). Numbers are in the byte order
// of the machine.
const (
	boltMagic   = 0xED0CDAED
	boltVersion = 2

	pageHeader  = 16 // id 8, flags 2, count 2, overflow 4
	elementSize = 16
	metaSize    = 64 // magic 4, version 4, page size 4, flags 4, root 8, sequence 8, freelist 8, high water 8, txid 8, sum 8

	branchPage   = 0x01
	leafPage     = 0x02
	metaPage     = 0x04
	freelistPage = 0x10

	bucketElement = 0x01
	bucketHeader  = 16 // root 8, sequence 8

	// maxFreelist says that a page's count does not fit and comes first.
	maxFreelist = 0xFFFF

	maxDepth = 64 // pages from a bucket's root to a leaf; a real tree has 3
)

var order = binary.NativeEndian

// verifyFile reads a bbolt file page by page, trusting none of it, so that
// bbolt need not be the one to find the damage. It checks the meta pages, the
// freelist and the tree of buckets: every page is what its parent thinks, is
// used once, and lies in the file; keys ascend. With all it goes through all
// rows and compares their number and checksum with what the file says, without
// only through the meta bucket. Damage is ErrCorrupt.
func verifyFile(path string, all bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	v := verifier{file: f, all: all, found: map[string]tally{}}
	err = v.run()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

type verifier struct {
	file *os.File
	all  bool

	pageSize  int64
	root      uint64
	freelist  uint64
	highWater uint64
	used      []uint64 // a bit per page
	rows      map[string][]byte
	found     map[string]tally // by path of bucket
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

func (v *verifier) run() error {
	if err := v.readMeta(); err != nil {
		return err
	}
	info, err := v.file.Stat()
	if err != nil {
		return err
	}
	if v.highWater < 4 || v.highWater > uint64(info.Size()/v.pageSize) {
		return damaged("%d pages of %d bytes in a file of %d", v.highWater, v.pageSize, info.Size())
	}
	v.used = make([]uint64, v.highWater/64+1)
	v.used[0] = 3 // the meta pages
	if err := v.readFreelist(); err != nil {
		return err
	}
	if err := v.bucket("", v.root, nil); err != nil {
		return err
	}
	if v.all {
		return v.compare()
	}
	return nil
}

// readMeta takes the newer of the two meta pages that is whole, as bbolt does.
func (v *verifier) readMeta() error {
	var txid uint64
	var buf [pageHeader + metaSize]byte
	for _, pos := range []int64{0, pageSize} {
		if _, err := v.file.ReadAt(buf[:], pos); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		m := buf[pageHeader:]
		sum := fnv.New64a()
		sum.Write(m[:metaSize-8])
		if order.Uint32(m) != boltMagic || order.Uint32(m[4:]) != boltVersion || order.Uint64(m[56:]) != sum.Sum64() {
			continue
		}
		if id := order.Uint64(m[48:]); v.pageSize == 0 || id > txid {
			txid = id
			v.pageSize = int64(order.Uint32(m[8:]))
			v.root, v.freelist, v.highWater = order.Uint64(m[16:]), order.Uint64(m[32:]), order.Uint64(m[40:])
		}
	}
	if v.pageSize != pageSize {
		return damaged("no meta page with pages of %d bytes", pageSize)
	}
	return nil
}

// page reads a page with its overflow and marks it used.
func (v *verifier) page(id uint64) ([]byte, error) {
	if id < 2 || id >= v.highWater {
		return nil, damaged("page %d is out of bounds", id)
	}
	buf := make([]byte, v.pageSize)
	if _, err := v.file.ReadAt(buf, int64(id)*v.pageSize); err != nil {
		return nil, fmt.Errorf("reading page %d: %w", id, err)
	}
	overflow := uint64(order.Uint32(buf[12:]))
	if order.Uint64(buf) != id || overflow >= v.highWater-id {
		return nil, damaged("page %d says it is %d with %d more", id, order.Uint64(buf), overflow)
	}
	for i := id; i <= id+overflow; i++ {
		if err := v.use(i); err != nil {
			return nil, err
		}
	}
	if overflow > 0 {
		rest := make([]byte, int64(overflow)*v.pageSize)
		if _, err := v.file.ReadAt(rest, int64(id+1)*v.pageSize); err != nil {
			return nil, fmt.Errorf("reading page %d: %w", id, err)
		}
		buf = append(buf, rest...)
	}
	return buf, nil
}

func (v *verifier) use(id uint64) error {
	if v.used[id/64]&(1<<(id%64)) != 0 {
		return damaged("page %d is used twice", id)
	}
	v.used[id/64] |= 1 << (id % 64)
	return nil
}

func (v *verifier) readFreelist() error {
	p, err := v.page(v.freelist)
	if err != nil {
		return err
	}
	if flags := order.Uint16(p[8:]); flags != freelistPage {
		return damaged("freelist page %d has flags %#x", v.freelist, flags)
	}
	count, ids := uint64(order.Uint16(p[10:])), p[pageHeader:]
	if count == maxFreelist {
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return damaged("freelist of %d pages in %d bytes", count, len(ids))
	}
	for i := range count {
		id := order.Uint64(ids[i*8:])
		if id < 2 || id >= v.highWater {
			return damaged("free page %d is out of bounds", id)
		}
		if err := v.use(id); err != nil {
			return err
		}
	}
	return nil
}

// walk is what is known on the way through one bucket.
type walk struct {
	path  string
	any   bool   // a key was seen
	last  []byte // the last one
	least []byte // the next must not be below, says the branch above it
	tally
}

// bucket walks the tree of a bucket: from its root page, or in inline, the
// page that small buckets have inside their value.
func (v *verifier) bucket(path string, root uint64, inline []byte) error {
	w := walk{path: path}
	var err error
	if root == 0 && path != "" {
		err = v.leaf(&w, inline)
	} else {
		err = v.tree(&w, root, 0)
	}
	v.found[path] = w.tally
	return err
}

func (v *verifier) tree(w *walk, id uint64, depth int) error {
	p, err := v.page(id)
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return damaged("bucket %q is %d pages deep", w.path, depth)
	}
	switch flags := order.Uint16(p[8:]); flags {
	case leafPage:
		return v.leaf(w, p)
	case branchPage:
	default:
		return damaged("page %d of bucket %q has flags %#x", id, w.path, flags)
	}
	count := int(order.Uint16(p[10:]))
	if count == 0 {
		return damaged("branch page %d is empty", id)
	}
	for i := range count {
		e, err := element(p, i, count)
		if err != nil {
			return err
		}
		key, err := slice(p, i, order.Uint32(e), order.Uint32(e[4:]))
		if err != nil {
			return err
		}
		// A branch's key may be that of a row since deleted, but never above
		// the rows under it nor below those before.
		if w.any && bytes.Compare(key, w.last) <= 0 {
			return damaged("keys of branch page %d do not ascend", id)
		}
		w.least = key
		if err := v.tree(w, order.Uint64(e[8:]), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// element returns the i-th of a page's count elements.
func element(p []byte, i, count int) ([]byte, error) {
	if pageHeader+count*elementSize > len(p) {
		return nil, damaged("%d elements in a page of %d bytes", count, len(p))
	}
	return p[pageHeader+i*elementSize:][:elementSize], nil
}

// slice returns n bytes at pos from the i-th element on.
func slice(p []byte, i int, pos, n uint32) ([]byte, error) {
	begin := uint64(pageHeader+i*elementSize) + uint64(pos)
	if end := begin + uint64(n); end <= uint64(len(p)) {
		return p[begin:end], nil
	}
	return nil, damaged("element %d lies outside its page", i)
}

func (v *verifier) leaf(w *walk, p []byte) error {
	if len(p) < pageHeader || order.Uint16(p[8:]) != leafPage {
		return damaged("bucket %q has no leaf where one must be", w.path)
	}
	count := int(order.Uint16(p[10:]))
	for i := range count {
		e, err := element(p, i, count)
		if err != nil {
			return err
		}
		flags, pos, ksize, vsize := order.Uint32(e), order.Uint32(e[4:]), order.Uint32(e[8:]), order.Uint32(e[12:])
		key, err := slice(p, i, pos, ksize)
		if err != nil {
			return err
		}
		value, err := slice(p, i, pos+ksize, vsize)
		if err != nil || uint64(pos)+uint64(ksize) > uint64(len(p)) {
			return damaged("element %d lies outside its page", i)
		}
		if len(key) == 0 || w.any && bytes.Compare(key, w.last) <= 0 || bytes.Compare(key, w.least) < 0 {
			return damaged("keys of bucket %q do not ascend", w.path)
		}
		w.any, w.last = true, key
		if err := v.row(w, flags, key, value); err != nil {
			return err
		}
	}
	return nil
}

// row takes a row of a bucket, or goes down into a bucket within.
func (v *verifier) row(w *walk, flags uint32, key, value []byte) error {
	switch flags {
	case 0:
		w.add(key, value)
		if w.path == "/meta" {
			if v.rows == nil {
				v.rows = map[string][]byte{}
			}
			v.rows[string(key)] = bytes.Clone(value)
		}
		return nil
	case bucketElement:
	default:
		return damaged("row of bucket %q has flags %#x", w.path, flags)
	}
	if len(value) < bucketHeader {
		return damaged("bucket %q within %q has no root", key, w.path)
	}
	path := w.path + "/" + string(key)
	if !v.all && path != "/"+string(bucketMeta) {
		return nil
	}
	return v.bucket(path, order.Uint64(value), value[bucketHeader:])
}

// compare checks what was found against the counts in the file.
func (v *verifier) compare() error {
	if v.rows == nil {
		return nil // new
	}
	if err := checkVersion(v.rows[string(keyVersion)]); err != nil {
		return err
	}
	census, err := unsealCensus(v.rows[string(keyCensus)])
	if err != nil {
		return err
	}
	for _, c := range census {
		for n, want := range c.segments {
			path := "/" + string(bucketStores) + "/" + c.spec.Name
			if c.spec.Segment > 0 {
				path += "/" + string(AppendStart(nil, n))
			}
			got := v.found[path]
			if empty, ok := v.rows[string(emptyRowKey(c.spec.Name))]; ok && c.spec.Segment == 0 {
				got.add(nil, empty)
			}
			if got != want {
				return damaged("store %s has %d rows of %d bytes with checksum %x, not %d of %d with %x",
					c.spec.Name, got.rows, got.bytes, got.sum, want.rows, want.bytes, want.sum)
			}
		}
	}
	return nil
}
