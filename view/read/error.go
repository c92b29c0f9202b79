package read

import (
	"errors"
	"fmt"
	"time"
)

// Code says why there is no answer.
type Code uint8

// The codes.
const (
	Internal     Code = iota
	NotOwner          // the partition is not held here: refresh the routes
	Restoring         // the copy is not ready; Progress says how far it is
	Rebalancing       // no owner is known at the moment
	Stale             // the copy is older than allowed
	Incomplete        // partitions are missing and the caller wants all
	UnknownStore      // no such store or ranking
	Forbidden         // the caller's scopes do not cover the store
	Timeout           // the deadline passed
	CircuitOpen       // the instance has failed too often lately
	Unavailable       // the instance is not reached
	BadInput          // the question makes no sense
	TooLarge          // the answer would exceed a limit
)

var codeNames = [...]string{
	"internal error", "not the owner", "restoring", "rebalancing", "stale", "incomplete",
	"unknown store", "forbidden", "timeout", "circuit open", "unavailable", "bad input", "limit exceeded",
}

func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// Retry says whether asking again, here or elsewhere, may help.
func (c Code) Retry() bool {
	switch c {
	case NotOwner, Restoring, Rebalancing, Unavailable, CircuitOpen:
		return true
	}
	return false
}

// Error is why there is no answer, or none of a partition.
type Error struct {
	Code       Code
	Message    string // for the caller; names no instance
	RetryAfter time.Duration
	Progress   *Progress // of Restoring
	Cause      error     // for the log only; does not travel
}

// Progress of a restore, in changelog records.
type Progress struct {
	Done, Total int64
	Rate        float64 // records a second
	ETA         time.Duration
}

func (e *Error) Error() string {
	s := e.Code.String()
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Cause }

// Reason is the error in a few words, for those who list missing partitions.
func (e *Error) Reason() string {
	if e.Message != "" {
		return e.Code.String() + ": " + e.Message
	}
	return e.Code.String()
}

// Errorf makes an Error with a message for the caller.
func Errorf(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Message: fmt.Sprintf(format, args...)}
}

// AsError finds the Error in err, or wraps it as Internal.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Internal, Cause: err}
}
