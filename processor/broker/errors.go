package broker

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Error is an error code that a broker answered with. Codes compare with
// errors.Is; a message the broker added is in the wrapping error's text.
// Source: https://kafka.apache.org/protocol#protocol_error_codes
type Error int16

// Codes that callers branch on.
const (
	ErrUnknownServer        Error = -1
	ErrOffsetOutOfRange     Error = 1
	ErrUnknownTopic         Error = 3
	ErrLeaderNotAvailable   Error = 5
	ErrNotLeader            Error = 6
	ErrRequestTimedOut      Error = 7
	ErrMessageTooLarge      Error = 10
	ErrCoordinatorLoading   Error = 14
	ErrCoordinatorNotReady  Error = 15
	ErrNotCoordinator       Error = 16
	ErrIllegalGeneration    Error = 22
	ErrUnknownMember        Error = 25
	ErrRebalanceInProgress  Error = 27
	ErrTopicExists          Error = 36
	ErrOutOfOrderSequence   Error = 45
	ErrDuplicateSequence    Error = 46
	ErrInvalidProducerEpoch Error = 47
	ErrInvalidTxnState      Error = 48
	ErrInvalidProducerID    Error = 49
	ErrConcurrentTxns       Error = 51
	ErrSASLFailed           Error = 58
	ErrUnknownProducerID    Error = 59
	ErrNonEmptyGroup        Error = 68
	ErrGroupNotFound        Error = 69
	ErrMemberIDRequired     Error = 79
	ErrFencedInstance       Error = 82
	ErrUnstableOffset       Error = 88
	ErrProducerFenced       Error = 90
	ErrUnknownTopicID       Error = 100
	ErrInconsistentTopicID  Error = 103

	errTopicAccess          Error = 29
	errGroupAccess          Error = 30
	errClusterAccess        Error = 31
	errUnsupportedMechanism Error = 33
	errIllegalSASLState     Error = 34
	errTransactionalAccess  Error = 53
)

// Sentinels of the client itself.
var (
	// ErrClosed: the client, fetcher or producer was closed or its Run ended.
	ErrClosed = errors.New("broker: closed")
	// ErrCorrupt: bytes of a record batch or of an answer that cannot be right.
	ErrCorrupt = errors.New("broker: corrupt data")
	// ErrGaveUp: a batch of the idempotent producer was not acknowledged in
	// time or was refused; it and every batch queued behind it failed. Whether
	// it was written is unknown.
	ErrGaveUp = errors.New("broker: gave up on a batch")
	// ErrInDoubt: whether the transaction committed is unknown. The
	// transaction refuses to commit again until Init succeeded.
	ErrInDoubt = errors.New("broker: transaction in doubt")
	// ErrGeneration: the group refused the member or its generation, and the
	// transaction was aborted for certain.
	ErrGeneration = errors.New("broker: group generation refused, transaction aborted")
	// ErrNeedsInit: a transaction was asked to commit before Init succeeded,
	// the first time or after ErrInDoubt.
	ErrNeedsInit = errors.New("broker: transaction needs Init")
	// ErrSessionExpired: no heartbeat succeeded for a session timeout.
	ErrSessionExpired = errors.New("broker: no heartbeat within the session timeout")
)

// ConnError is a request that got no answer: dialling, TLS, authentication or
// the exchange itself went wrong.
type ConnError struct {
	Node int32 // broker the request was meant for, -1 for any
	Err  error
}

func (e *ConnError) Error() string {
	if e.Node < 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("broker %d: %v", e.Node, e.Err)
}

func (e *ConnError) Unwrap() error { return e.Err }

// Code is the number on the wire.
func (e Error) Code() int16 { return int16(e) }

// Name is Kafka's constant for the code, such as NOT_COORDINATOR.
func (e Error) Name() string {
	if d, ok := describe(e); ok {
		return d.name
	}
	return "ERROR_" + strconv.Itoa(int(e))
}

func (e Error) Error() string {
	text := fmt.Sprintf("kafka: %s (%d)", strings.ToLower(strings.ReplaceAll(e.Name(), "_", " ")), int16(e))
	switch e {
	case errTopicAccess, errGroupAccess, errClusterAccess, errTransactionalAccess:
		text += ": Kafka's ACLs do not allow it to this user"
	}
	return text
}

// Retriable tells whether the same request may succeed later: leaders and
// coordinators that move or load, transactions and offsets that settle,
// throttling, connections that break. Contexts that ended are not retriable.
func Retriable(err error) bool {
	var code Error
	if errors.As(err, &code) {
		d, _ := describe(code)
		return d.retriable
	}
	var conn *ConnError
	if errors.As(err, &conn) {
		return true
	}
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() && !isContext(err)
}

// codeError turns a code of an answer into an error; 0 is nil. The message, if
// any, is the broker's own.
func codeError(code int16, message string) error {
	switch {
	case code == 0:
		return nil
	case message == "":
		return Error(code)
	default:
		return fmt.Errorf("%w: %s", Error(code), message)
	}
}

// isCode tells whether err carries one of the codes.
func isCode(err error, codes ...Error) bool {
	var e Error
	if !errors.As(err, &e) {
		return false
	}
	for _, c := range codes {
		if e == c {
			return true
		}
	}
	return false
}
