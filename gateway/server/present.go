package server

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/view/read"
)

// The values of extensions.code.
const (
	CodeParse           = "GRAPHQL_PARSE_FAILED"
	CodeValidation      = "GRAPHQL_VALIDATION_FAILED"
	CodeBadInput        = "BAD_USER_INPUT"
	CodeUnauthenticated = "UNAUTHENTICATED"
	CodeForbidden       = "FORBIDDEN"
	CodeRestoring       = "VIEW_RESTORING"
	CodeUnavailable     = "VIEW_UNAVAILABLE"
	CodeIncomplete      = "VIEW_INCOMPLETE"
	CodeStale           = "STALE"
	CodeCircuitOpen     = "CIRCUIT_OPEN"
	CodeTimeout         = "TIMEOUT"
	CodeRateLimited     = "RATE_LIMITED"
	CodeLimit           = "LIMIT_EXCEEDED"
	CodeInternal        = "INTERNAL"
)

// How long to wait before asking again, where the error does not say.
const (
	retrySoon    = time.Second
	retryRestore = 5 * time.Second // at most, while a copy is restoring
)

// maxMessage bounds a message, which may quote a document or a value.
const maxMessage = 300

// internalError is a panic's: never the client's fault, already logged.
type internalError struct{}

func (internalError) Error() string { return "internal error" }

// presenter makes the error a client sees: of a known kind with its code, or
// INTERNAL with the cause in the log alone.
func (s *Server) presenter() graphql.ErrorPresenterFunc {
	return func(ctx context.Context, err error) *gqlerror.Error {
		out := &gqlerror.Error{Path: graphql.GetPath(ctx)}
		var located *gqlerror.Error
		if errors.As(err, &located) {
			out.Locations = located.Locations
			if located.Path != nil {
				out.Path = located.Path
			}
		}
		out.Message, out.Extensions = s.explain(ctx, err, located, out.Path.String())
		if code, ok := out.Extensions["code"].(string); ok {
			s.metrics.errors.WithLabelValues(code).Inc()
		}
		return out
	}
}

// explain is the message and extensions for an error of a resolver.
func (s *Server) explain(ctx context.Context, err error, located *gqlerror.Error, path string) (string, map[string]any) {
	var e *read.Error
	switch {
	case errors.As(err, &e):
		message, ext := explainRead(e)
		if e.Code == read.Internal || e.Code == read.UnknownStore || e.Cause != nil {
			s.logError(ctx, path, err, ext["code"] == CodeInternal)
		}
		return message, ext
	case errors.Is(err, auth.ErrUnauthenticated):
		return "the token has ended, or none was given", map[string]any{"code": CodeUnauthenticated}
	case errors.Is(err, auth.ErrForbidden):
		return "forbidden", map[string]any{"code": CodeForbidden}
	case errors.Is(err, context.DeadlineExceeded):
		return "the time for the operation is over", map[string]any{"code": CodeTimeout, "retryAfterMs": millis(retrySoon)}
	case errors.Is(err, context.Canceled):
		return "the operation was cancelled", map[string]any{"code": CodeTimeout}
	}
	if located != nil && located.Extensions["code"] != nil {
		// A resolver written by hand speaks to the client by setting a code.
		return shorten(located.Message), located.Extensions
	}
	if !errors.As(err, new(internalError)) {
		if isArgument(ctx) {
			return shorten(messageOf(err, located)), map[string]any{"code": CodeBadInput}
		}
		s.logError(ctx, path, err, true)
	}
	return "internal error", map[string]any{"code": CodeInternal}
}

// explainRead maps the codes of reads to those of GraphQL.
func explainRead(e *read.Error) (string, map[string]any) {
	code, message := CodeInternal, e.Reason()
	switch e.Code {
	case read.Restoring:
		code = CodeRestoring
	case read.Unavailable, read.NotOwner, read.Rebalancing:
		code = CodeUnavailable
	case read.Incomplete:
		code = CodeIncomplete
	case read.Stale:
		code = CodeStale
	case read.CircuitOpen:
		code = CodeCircuitOpen
	case read.Timeout:
		code = CodeTimeout
	case read.TooLarge:
		code = CodeLimit
	case read.BadInput:
		code = CodeBadInput
	case read.Forbidden:
		code, message = CodeForbidden, "forbidden"
	default:
		message = "internal error"
	}
	ext := map[string]any{"code": code}
	if p := e.Progress; p != nil && e.Code == read.Restoring {
		ext["done"], ext["total"] = p.Done, p.Total
		if p.Rate > 0 {
			ext["rate"] = p.Rate
		}
		if p.ETA > 0 {
			ext["etaMs"] = millis(p.ETA)
		}
	}
	var missing read.MissingPartitions
	if errors.As(e.Cause, &missing) {
		ext["missing"] = missingExtension(missing)
	}
	if wait := retryAfter(e); wait > 0 {
		ext["retryAfterMs"] = millis(wait)
	}
	return shorten(message), ext
}

// missingExtension lists partitions as Freshness does.
func missingExtension(missing read.MissingPartitions) []map[string]any {
	list := make([]map[string]any, len(missing))
	for i, m := range missing {
		list[i] = map[string]any{"partition": m.Partition, "reason": shorten(m.Reason)}
	}
	return list
}

// retryAfter is when asking again may help; 0: it does not.
func retryAfter(e *read.Error) time.Duration {
	switch {
	case e.RetryAfter > 0:
		return e.RetryAfter
	case e.Code == read.Restoring && e.Progress != nil && e.Progress.ETA > 0:
		return min(e.Progress.ETA, retryRestore)
	case e.Code.Retry(), e.Code == read.Stale, e.Code == read.Incomplete, e.Code == read.Timeout:
		return retrySoon
	}
	return 0
}

// logError logs what the client is not told; our own faults as errors.
func (s *Server) logError(ctx context.Context, path string, err error, ours bool) {
	operation := ""
	if graphql.HasOperationContext(ctx) {
		operation = graphql.GetOperationContext(ctx).OperationName
	}
	if ours {
		s.log.Error("GraphQL field", "field", path, "operation", operation, "cause", err)
		return
	}
	s.log.Debug("GraphQL field", "field", path, "operation", operation, "cause", err)
}

// recoverer logs a panic of a resolver.
func (s *Server) recoverer() graphql.RecoverFunc {
	return func(ctx context.Context, v any) error {
		s.log.Error("panic in a resolver", "field", graphql.GetPath(ctx).String(), "cause", v, "stack", string(debug.Stack()))
		return internalError{}
	}
}

// isArgument says whether an error is about the arguments of the context's
// field: generated code sets Args only once all of them have been read.
func isArgument(ctx context.Context) bool {
	f := graphql.GetFieldContext(ctx)
	return f != nil && f.Args == nil && f.Field.Field != nil && f.Field.Definition != nil && len(f.Field.Definition.Arguments) > 0
}

func messageOf(err error, located *gqlerror.Error) string {
	if located != nil {
		return located.Message
	}
	return err.Error()
}

// shorten bounds a message.
func shorten(m string) string {
	if len(m) > maxMessage {
		m = strings.ToValidUTF8(m[:maxMessage], "") + "…"
	}
	return m
}

// problem is an error of a document or its variables.
func problem(code, format string, args ...any) gqlerror.List {
	return gqlerror.List{{Message: fmt.Sprintf(format, args...), Extensions: map[string]any{"code": code}}}
}
