package processor

import (
	"encoding/json"
	"fmt"

	"github.com/streamgauge/streamgauge/view/read"
)

// memberVersion is the format of what members tell the leader and the leader
// tells them. A member of another version is not understood, never guessed at.
const memberVersion = 1

// maxMemberData bounds what one member may send, in bytes.
const maxMemberData = 1 << 20

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
}

// routeData is what the leader tells every member: who holds what.
type routeData struct {
	Version    int                 `json:"version"`
	Instances  []memberData        `json:"instances"`
	Partitions map[string]int32    `json:"partitions"`
	Active     map[string][]string `json:"active"` // instance by partition, by subtopology
	// Superseded are the members that get nothing, since a newer one has their
	// name: the other's address by member id.
	Superseded map[string]string `json:"superseded,omitempty"`
}

func decodeMember(b []byte) (*memberData, error) {
	var d memberData
	if err := decodeBounded(b, &d); err != nil {
		return nil, err
	}
	return &d, checkMemberVersion(d.Version)
}

func decodeRoutes(b []byte) (*routeData, error) {
	var d routeData
	if err := decodeBounded(b, &d); err != nil {
		return nil, err
	}
	return &d, checkMemberVersion(d.Version)
}

func decodeBounded(b []byte, into any) error {
	if len(b) > maxMemberData {
		return fmt.Errorf("member data of %d bytes, the limit is %d", len(b), maxMemberData)
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
		r.Instances[m.Instance] = read.Peer{ID: m.Instance, Addr: m.Addr, HTTP: m.HTTP}
	}
	for sub, owners := range d.Active {
		copies := make([][]read.Copy, len(owners))
		for p, owner := range owners {
			if owner != "" {
				copies[p] = []read.Copy{{Instance: owner, Role: read.Active}}
			}
		}
		r.Copies[sub] = copies
	}
	return r
}
