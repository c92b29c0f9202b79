package processor

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/streamgauge/streamgauge/view/read"
)

// memberVersion is the format of what members tell the leader and the leader
// tells them. A member of another version is not understood, never guessed at.
const memberVersion = 1

// Bounds of what one member may send, of a plan, and of a name or an address, in
// bytes; of the partitions that a leader plans for though it does not know them.
const (
	maxMemberData = 1 << 20
	maxRouteData  = 16 << 20
	maxName       = 256
	maxForeign    = 4096
)

// memberData is what an instance tells the leader when it joins.
type memberData struct {
	Version       int      `json:"version"`
	Instance      string   `json:"instance"`
	Addr          string   `json:"addr"`
	HTTP          string   `json:"http"`
	Fingerprint   string   `json:"fingerprint"` // of its schema
	Subtopologies []string `json:"subtopologies"`
	Tasks         []string `json:"tasks"` // active, by name
	// Started tells two processes of one instance name apart: ns since the epoch.
	// 0: of a release that did not say; it counts as the older.
	Started int64 `json:"started,omitempty"`
	// Secure: it speaks mutual TLS with the others.
	Secure bool `json:"tls,omitempty"`
	// Rack is where it is; "": nobody said.
	Rack string `json:"rack,omitempty"`
	// Join counts the joins of this process. A member that joins again with the
	// same data as before is given the assignment of before, without a plan.
	Join int64 `json:"join,omitempty"`
	// Inputs describe its subtopologies, so that a leader of another schema can
	// plan for those that it does not know.
	Inputs map[string]inputData `json:"inputs,omitempty"`
	// Copies that it has, open or in a file, by subtopology. A release that does
	// not say has none.
	Copies map[string][]heldCopy `json:"copies,omitempty"`
}

// inputData is a subtopology's input.
type inputData struct {
	Topic      string `json:"t"`
	Partitions int32  `json:"n"`
	Schema     string `json:"s,omitempty"` // mark of the columns that it keeps; "": it keeps no state
}

// heldCopy is a copy of a task as its instance tells of it.
type heldCopy struct {
	Partition int32  `json:"p"`
	Position  int64  `json:"n"`           // changelog offsets that are in it, summed
	Schema    string `json:"s,omitempty"` // mark of the columns that it was written with; "": it has no commit
	Use       use    `json:"u,omitempty"`

	columns map[string]string // that Schema is the mark of, as long as that was not asked for
}

// use is what an instance does with a copy.
type use uint8

const (
	stored     use = iota // it is a file
	following             // read on, as a standby or a warm-up, or before it is processed
	processing            // as the owner
	leaving               // as a former owner, which still answers
)

// routeData is what the leader tells every member: who holds what.
type routeData struct {
	Version    int                 `json:"version"`
	Instances  []memberData        `json:"instances"`
	Partitions map[string]int32    `json:"partitions"`
	Active     map[string][]string `json:"active"` // instance by partition, by subtopology
	// Others are the copies that are not the owner's, by partition, by
	// subtopology: standbys first, then lingering copies, then warm-ups.
	Others map[string][][]otherCopy `json:"others,omitempty"`
	// Superseded are the members that get nothing, since a newer one has their
	// name: the other's address by member id.
	Superseded map[string]string `json:"superseded,omitempty"`
}

// otherCopy is a copy that is not the owner's.
type otherCopy struct {
	At   int       `json:"i"` // its instance's place in Instances
	Role read.Role `json:"r"`
}

// rolesOf are the copies that an instance is to have beside those it owns.
func (d *routeData) rolesOf(instance string) map[taskID]read.Role {
	roles := make(map[taskID]read.Role)
	at := slices.IndexFunc(d.Instances, func(m memberData) bool { return m.Instance == instance })
	for sub, parts := range d.Others {
		for p, others := range parts {
			for _, o := range others {
				if o.At == at {
					roles[taskID{sub, int32(p)}] = o.Role
				}
			}
		}
	}
	return roles
}

func decodeMember(b []byte) (*memberData, error) {
	var d memberData
	if err := decodeBounded(b, maxMemberData, &d); err != nil {
		return nil, err
	}
	if err := checkMemberVersion(d.Version); err != nil {
		return nil, err
	}
	for _, name := range []string{d.Instance, d.Addr, d.HTTP, d.Rack} {
		if len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
			return nil, fmt.Errorf("member data: %.40q is no name or address", name)
		}
	}
	if d.Instance == "" {
		return nil, errors.New("member data: an instance without a name")
	}
	return &d, nil
}

func decodeRoutes(b []byte) (*routeData, error) {
	var d routeData
	if err := decodeBounded(b, maxRouteData, &d); err != nil {
		return nil, err
	}
	return &d, checkMemberVersion(d.Version)
}

func decodeBounded(b []byte, most int, into any) error {
	if len(b) > most {
		return fmt.Errorf("member data of %d bytes, the limit is %d", len(b), most)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("member data: %w", err)
	}
	return nil
}

func checkMemberVersion(v int) error {
	if v != memberVersion {
		return fmt.Errorf("member data of format %d, this release reads %d", v, memberVersion)
	}
	return nil
}

func encodeData(d any) []byte {
	b, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings, numbers and maps of them
	}
	return b
}

// routes makes the table that reads follow.
func (d *routeData) routes(generation int32) *read.Routes {
	r := &read.Routes{
		Generation: int64(generation),
		Instances:  make(map[string]read.Peer, len(d.Instances)),
		Partitions: d.Partitions,
		Copies:     make(map[string][][]read.Copy, len(d.Active)),
	}
	for _, m := range d.Instances {
		r.Instances[m.Instance] = read.Peer{ID: m.Instance, Addr: m.Addr, HTTP: m.HTTP, Rack: m.Rack}
	}
	for sub, owners := range d.Active {
		copies := make([][]read.Copy, len(owners))
		others := d.Others[sub]
		for p, owner := range owners {
			if owner != "" {
				copies[p] = append(copies[p], read.Copy{Instance: owner, Role: read.Active})
			}
			if p >= len(others) {
				continue
			}
			for _, o := range others[p] {
				if o.At >= 0 && o.At < len(d.Instances) {
					copies[p] = append(copies[p], read.Copy{Instance: d.Instances[o.At].Instance, Role: o.Role})
				}
			}
		}
		r.Copies[sub] = copies
	}
	return r
}
