package processor

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/read"
)

// subscribed is a member's metadata as Kafka's coordinator keeps it: version 1,
// no topics, the user data, nothing owned.
func subscribed(data []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, 1)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	b = append(b, data...)
	return binary.BigEndian.AppendUint32(b, 0)
}

func TestSeedsOfMembers(t *testing.T) {
	member := func(d memberData) broker.DescribedMember {
		return broker.DescribedMember{Metadata: subscribed(encodeData(&d))}
	}
	a := member(memberData{Version: memberVersion, Instance: "a", Addr: "10.0.0.1:9090", HTTP: "10.0.0.1:8080"})
	later := member(memberData{Version: 99, Instance: "b", Addr: "10.0.0.2:9090"})
	for _, c := range []struct {
		name    string
		members []broker.DescribedMember
		want    []read.Peer
		err     string
	}{
		{"one that is understood, one that is not", []broker.DescribedMember{later, a}, []read.Peer{{ID: "a", Addr: "10.0.0.1:9090", HTTP: "10.0.0.1:8080"}}, ""},
		{"nobody", nil, nil, "no instance of app is in Kafka's group"},
		{"another release", []broker.DescribedMember{later}, nil, "member data of format 99"},
		{"another client", []broker.DescribedMember{{Metadata: subscribed(nil)}}, nil, "member data"},
		{"garbage", []broker.DescribedMember{{Metadata: []byte{1}}}, nil, "find the instances of app"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := seedsOf("app", broker.GroupDescription{Members: c.members})
			if !slices.Equal(got, c.want) || c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	if _, err := seedsOf("app", broker.GroupDescription{Members: []broker.DescribedMember{{ID: "x"}}}); !errors.Is(err, ErrRebalancing) {
		t.Errorf("in a rebalance: %v", err)
	}
}
