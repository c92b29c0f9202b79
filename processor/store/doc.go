// Package store keeps the state of one task: a bbolt file, the changes since
// its last checkpoint in memory, and immutable snapshots over both. Keys and
// values are bytes; the package knows nothing of schemas or of Kafka.
//
//	the loop                                          any goroutine
//	────────                                          ─────────────
//	pending (the caller's)
//	  │ Publish: one sorted run per commit
//	  ▼
//	runs, at most 4, newest first ──────────────────┐
//	  │ Freeze: no copy, only a change of owner     │
//	  ▼                                             ├─► Snapshot: Get, Scan,
//	frozen runs ────────────────────────────────────┤   ScanWindows, Count
//	  │ WriteFrozen: any goroutine, key order,      │
//	  │ one fsynced transaction with State          │
//	  ▼                                             │
//	bbolt file ─────────────────────────────────────┘
//	  └ Installed: a new read transaction takes the
//	    place of the frozen runs and of the old one
//
// The file always holds exactly what the last successful WriteFrozen wrote:
// rows, counts and State in one transaction. Whatever came later is the
// changelog's to bring back.
//
// # Goroutines
//
// Publish, Freeze, Installed, DropSegments and Checkpoint (the three steps in
// one) belong to the task's loop: one goroutine. WriteFrozen may run beside all
// but the last. Snapshot, the
// methods of an acquired Snapshot, OverlayBytes and DirtySince are for
// everybody. Close comes after the loop has ended.
//
// A Snapshot holds the runs it was published with and shares the bbolt read
// transaction (base) of its checkpoint. Both are counted by compare-and-swap;
// the last release of a base ends its transaction. Reads take no lock.
//
// Lock order: Store.writeMu (one checkpoint, or closing) before Store.baseMu
// (how many bases are open) before bbolt's own. baseMu is never held across a
// call into bbolt.
//
// # The file
//
// Two top-level buckets. "stores" has a bucket per store; that of a windowed
// store has a bucket per segment, named by its number in 8 bytes, big-endian
// with the sign flipped. "meta" has the format version, the State, the number
// of rows, their bytes and the sum of their checksums for each store and
// segment, and the row of the empty key of a store that has one (bbolt refuses
// empty keys).
//
// The memory map is made much larger than the file (address space, not
// memory): growing it would have to wait for every open read transaction, and
// one is always open. A file that nears the end of its map gives ErrFull.
//
// Beside the file lies a marker while it is open. Found at Open, it means
// that the last owner did not close the file: then every page is verified.
// bbolt survives kill -9 and power loss without this; the walk is there
// because a damaged page can kill the process that reads it, and a restart
// must end in a rebuild and not in the same death again. A file closed in
// order has its meta pages, freelist and the meta bucket verified only. bbolt
// has no checksums on data pages; the sums kept with the counts make up for it
// where all is read.
//
// # Ranked rows
//
// Ranking keeps the best rows of a store by a compare function for reads that
// want the top few of a million. It is the loop's; what it publishes is
// immutable.
package store
