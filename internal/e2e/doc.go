// Package e2e tests the parts together, without the HTTP edge: an embedded
// broker, workers, gateways that reach each other over gRPC, and the generated
// schema of the example.
package e2e
