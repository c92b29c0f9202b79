package broker

import (
	"fmt"
	"maps"
	"slices"
)

// Subscription is what a member tells the group when it joins.
type Subscription struct {
	Topics   []string
	UserData []byte             // the assignor's own
	Owned    map[string][]int32 // partitions held now, by topic
}

// Assignment is what the group's leader gives a member.
type Assignment struct {
	Partitions map[string][]int32 // by topic
	UserData   []byte             // the assignor's own
}

// GroupMember is a member as the assignor sees it.
type GroupMember struct {
	ID, InstanceID string
	Subscription
}

// The consumer protocol's layouts (ConsumerProtocolSubscription v1 and
// ConsumerProtocolAssignment v1 in Kafka's source), which Kafka's tools decode.
const (
	protocolType    = "consumer"
	protocolName    = "streamgauge"
	protocolVersion = 1
)

func encodeSubscription(s Subscription) []byte {
	var e encoder
	e.int16(protocolVersion)
	e.array(len(s.Topics))
	for _, t := range s.Topics {
		e.string(t)
	}
	e.nullableBytes(s.UserData)
	encodePartitions(&e, s.Owned)
	return e.b
}

// ParseSubscription decodes a member's metadata, as DescribeGroup returns it.
// Versions of other clients are read too; what a version lacks is empty.
func ParseSubscription(data []byte) (Subscription, error) {
	d := &decoder{b: data}
	var s Subscription
	version := d.int16()
	for range d.items() {
		s.Topics = append(s.Topics, d.string())
	}
	s.UserData = slices.Clone(d.bytes())
	if version >= 1 {
		s.Owned = decodePartitions(d)
	}
	if d.err != nil {
		return Subscription{}, fmt.Errorf("group member's metadata: %w", d.err)
	}
	return s, nil
}

func encodeAssignment(a Assignment) []byte {
	var e encoder
	e.int16(protocolVersion)
	encodePartitions(&e, a.Partitions)
	e.nullableBytes(a.UserData)
	return e.b
}

// ParseAssignment decodes a member's assignment, as DescribeGroup returns it. No
// bytes at all are an empty assignment: Kafka gives that to members the leader
// left out.
func ParseAssignment(data []byte) (Assignment, error) {
	if len(data) == 0 {
		return Assignment{}, nil
	}
	d := &decoder{b: data}
	d.int16() // version
	a := Assignment{Partitions: decodePartitions(d)}
	a.UserData = slices.Clone(d.bytes())
	if d.err != nil {
		return Assignment{}, fmt.Errorf("group assignment: %w", d.err)
	}
	return a, nil
}

func encodePartitions(e *encoder, partitions map[string][]int32) {
	e.array(len(partitions))
	for _, topic := range slices.Sorted(maps.Keys(partitions)) {
		e.string(topic)
		e.int32s(partitions[topic])
	}
}

func decodePartitions(d *decoder) map[string][]int32 {
	var partitions map[string][]int32
	for range d.items() {
		if partitions == nil {
			partitions = make(map[string][]int32)
		}
		topic := d.string()
		partitions[topic] = append(partitions[topic], d.int32s()...)
	}
	return partitions
}
